// SPDX-License-Identifier: Apache-2.0
// The turns of one GPU. Converts reports of processes into reports of tenants (shares), lets the
// turn scheduler decide, and changes the gates. Pure: time and reports come in, gates go out
// through a function.
#pragma once

#include "gpu/abi/fence.h"
#include "sharing/daemon/shared_pages.hpp"
#include "sharing/policy/turn_scheduler.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace gantry::daemon {

class GpuTurnScheduler {
 public:
  using SetGate = std::function<void(policy::TenantId tenant, std::uint32_t word)>;
  explicit GpuTurnScheduler(SetGate set_gate, const policy::SchedulerTuning& pace = {})
      : controller_(pace), set_gate_(std::move(set_gate)) {}

  void add(policy::TenantId tenant, const policy::TimePolicy& time_policy, policy::Time now);
  void change(policy::TenantId tenant, const policy::TimePolicy& time_policy, policy::Time now);
  void remove(policy::TenantId tenant, policy::Time now);
  bool has(policy::TenantId tenant) const { return tenants_.count(tenant) != 0; }
  bool empty() const { return tenants_.empty(); }

  // Ignores events that are not about work, and unknown tenants.
  void report(policy::TenantId tenant, std::uint32_t slot, const FenceReport& report,
              policy::Time now);
  // Reads the process's row, because a report may have been lost if its socket was full.
  void look(policy::TenantId tenant, std::uint32_t slot, const ProcessUsage& row, policy::Time now);
  void gone(policy::TenantId tenant, std::uint32_t slot, policy::Time now);
  void charge(policy::TenantId tenant, policy::Time unreported, policy::Time now);

  void tick(policy::Time now);
  void resume(policy::Time now);
  std::optional<policy::Time> deadline() const { return controller_.deadline(); }
  policy::Time alert_until() const { return controller_.alert_until(); }
  std::optional<policy::TenantView> view(policy::TenantId tenant) const {
    return controller_.view(tenant);
  }

 private:
  struct Tenant {
    std::set<std::uint32_t> busy;      // slots that have work or wait to launch some
    std::set<std::uint32_t> draining;  // slots that were busy when the gate was shut
  };
  void active(policy::TenantId id, Tenant& tenant, std::uint32_t slot, policy::Time now);
  void idle(policy::TenantId id, Tenant& tenant, std::uint32_t slot, policy::Time now);
  void drained(policy::TenantId id, Tenant& tenant, std::uint32_t slot, policy::Time now);
  void apply_gate_changes();

  policy::TurnScheduler controller_;
  SetGate set_gate_;
  std::map<policy::TenantId, Tenant> tenants_;
};

std::uint32_t gate_word(policy::GateState state);

}  // namespace gantry::daemon
