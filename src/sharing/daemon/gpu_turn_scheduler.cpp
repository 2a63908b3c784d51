// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/gpu_turn_scheduler.hpp"

namespace gantry::daemon {

using policy::Time;

static_assert(static_cast<int>(policy::Gate::Open) == FENCE_OPEN);
static_assert(static_cast<int>(policy::Gate::One) == FENCE_ONE);
static_assert(static_cast<int>(policy::Gate::Shut) == FENCE_SHUT);

std::uint32_t gate_word(policy::GateState state) {
  return (state.turn << FENCE_TURN_SHIFT) | static_cast<std::uint32_t>(state.gate);
}

void GpuTurnScheduler::add(policy::TenantId tenant, const policy::TimePolicy& time_policy,
                           Time now) {
  tenants_.try_emplace(tenant);
  controller_.add(tenant, time_policy, now);
  apply_gate_changes();
}

void GpuTurnScheduler::change(policy::TenantId tenant, const policy::TimePolicy& time_policy,
                              Time now) {
  controller_.change(tenant, time_policy, now);
  apply_gate_changes();
}

void GpuTurnScheduler::remove(policy::TenantId tenant, Time now) {
  if (tenants_.erase(tenant) == 0) return;
  controller_.remove(tenant, now);
  set_gate_(tenant, FENCE_OPEN);  // the gate is no longer controlled
  apply_gate_changes();
}

void GpuTurnScheduler::report(policy::TenantId id, std::uint32_t slot, const FenceReport& report,
                              Time now) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  auto& tenant = found->second;
  switch (report.event) {
    case FENCE_ACTIVE: active(id, tenant, slot, now); break;
    case FENCE_IDLE: idle(id, tenant, slot, now); break;
    case FENCE_DRAINED:
      if (report.turn == controller_.gate(id).turn) drained(id, tenant, slot, now);
      break;
    default: return;
  }
  apply_gate_changes();
}

void GpuTurnScheduler::look(policy::TenantId id, std::uint32_t slot, const ProcessUsage& row,
                            Time now) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  auto& tenant = found->second;
  const bool known_busy = tenant.busy.count(slot) != 0;
  if (row.busy && row.cost_ns != 0) controller_.set_kernel_time(id, Time(row.cost_ns));
  if (row.busy && !known_busy) active(id, tenant, slot, now);
  if (!row.busy && known_busy) idle(id, tenant, slot, now);
  if (row.busy && known_busy && row.drained == controller_.gate(id).turn)
    drained(id, tenant, slot, now);
  apply_gate_changes();
}

void GpuTurnScheduler::gone(policy::TenantId id, std::uint32_t slot, Time now) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  idle(id, found->second, slot, now);
  apply_gate_changes();
}

void GpuTurnScheduler::charge(policy::TenantId tenant, Time unreported, Time now) {
  controller_.charge(tenant, unreported, now);
  apply_gate_changes();
}

void GpuTurnScheduler::resume(Time now) {
  controller_.resume(now);
  apply_gate_changes();
}

void GpuTurnScheduler::tick(Time now) {
  controller_.tick(now);
  apply_gate_changes();
}

// A process that starts work while the gate is shut waits there, so it has nothing to drain.
void GpuTurnScheduler::active(policy::TenantId id, Tenant& tenant, std::uint32_t slot, Time now) {
  const bool first = tenant.busy.empty();
  if (tenant.busy.insert(slot).second && first) controller_.active(id, now);
}

void GpuTurnScheduler::idle(policy::TenantId id, Tenant& tenant, std::uint32_t slot, Time now) {
  if (tenant.busy.erase(slot) == 0) return;
  if (tenant.busy.empty()) {
    tenant.draining.clear();
    controller_.idle(id, now);
    return;
  }
  drained(id, tenant, slot, now);
}

void GpuTurnScheduler::drained(policy::TenantId id, Tenant& tenant, std::uint32_t slot, Time now) {
  if (tenant.draining.erase(slot) == 0 || !tenant.draining.empty()) return;
  controller_.drained(id, controller_.gate(id).turn, now);
}

void GpuTurnScheduler::apply_gate_changes() {
  for (const auto& order : controller_.take_gate_changes()) {
    const auto found = tenants_.find(order.tenant);
    if (found == tenants_.end()) continue;
    auto& tenant = found->second;
    tenant.draining.clear();
    if (order.gate.gate == policy::Gate::Shut) tenant.draining = tenant.busy;
    set_gate_(order.tenant, gate_word(order.gate));
  }
}

}  // namespace gantry::daemon
