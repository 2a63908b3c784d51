// SPDX-License-Identifier: Apache-2.0
// Reports and accounts. turn_scheduler_turns.cpp decides from them.
#include "sharing/policy/turn_scheduler.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::policy {
namespace {

constexpr std::uint32_t kTurnMask = (std::uint32_t{1} << 30) - 1;
constexpr double kLeastForWeights = 0.01;  // however much the percentages take
constexpr double kPriorityFactor = 10;     // one step of priority, among tenants with a weight

double weight_of(const TimePolicy& time_policy) {
  return time_policy.weight * std::pow(kPriorityFactor, static_cast<double>(time_policy.priority));
}

}  // namespace

TurnScheduler::Tenant* TurnScheduler::find(TenantId id) {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? nullptr : &found->second;
}

// Percentages are of all time; tenants with a weight share the rest. If the GPU is overcommitted,
// all parts shrink alike.
void TurnScheduler::set_parts() {
  double percents = 0;
  double weights = 0;
  for (const auto& [id, tenant] : tenants_) {
    percents += tenant.time_policy.percent / 100.0;
    if (tenant.time_policy.percent == 0) weights += weight_of(tenant.time_policy);
  }
  const double rest = weights > 0 ? std::max(1 - percents, kLeastForWeights) : 0;
  const double whole = std::max(1.0, percents + rest);
  for (auto& [id, tenant] : tenants_) {
    const double part = tenant.time_policy.percent != 0
                            ? tenant.time_policy.percent / 100.0
                            : rest * weight_of(tenant.time_policy) / weights;
    tenant.part = part / whole;
  }
}

void TurnScheduler::add(TenantId id, const TimePolicy& time_policy, Time now) {
  advance(now);
  auto& tenant = tenants_[id];
  tenant = {};
  tenant.time_policy = time_policy;
  set_parts();
  tenant.credit = first_credit(tenant);
  decide();
}

void TurnScheduler::change(TenantId id, const TimePolicy& time_policy, Time now) {
  advance(now);
  auto* tenant = find(id);
  if (tenant == nullptr) return;
  normalize_lags(tenant->time_policy.priority);
  if (tenant->time_policy.priority != time_policy.priority) tenant->lag = 0;
  tenant->time_policy = time_policy;
  set_parts();
  decide();
}

void TurnScheduler::remove(TenantId id, Time now) {
  advance(now);
  auto* tenant = find(id);
  if (tenant == nullptr) return;
  const auto priority = tenant->time_policy.priority;
  tenants_.erase(id);
  if (turn_holder_ == id) turn_holder_.reset();
  set_parts();
  normalize_lags(priority);
  decide();
}

void TurnScheduler::learn_pause(Tenant& tenant) const {
  if (tenant.last_busy == Time::min()) return;
  const auto pause = now_ - tenant.last_busy;
  tenant.pause = tenant.pause == Time::max() ? pause : (3 * tenant.pause + pause) / 4;
}

void TurnScheduler::active(TenantId id, Time at) {
  advance(at);
  auto* tenant = find(id);
  if (tenant == nullptr || tenant->busy) return;
  // Before its first work a tenant saves nothing: to a new daemon, a tenant that did not stop
  // working looks idle until its processes have connected.
  if (tenant->capped() && tenant->last_busy == Time::min())
    tenant->credit = std::min(tenant->credit, first_credit(*tenant));
  // A debt stays, but a credit ends when the tenant has no work.
  tenant->lag = std::min(tenant->lag, 0.0);
  tenant->express_credit_left = may_become_express(*tenant) ? tenant->credit : 0;
  tenant->burst = 0;
  tenant->busy = true;
  tenant->drained = true;
  learn_pause(*tenant);
  tenant->busy_since = tenant->last_busy = now_;
  decide();
}

void TurnScheduler::drained(TenantId id, std::uint32_t turn, Time at) {
  advance(at);
  auto* tenant = find(id);
  if (tenant == nullptr || tenant->gate.gate != Gate::Shut || tenant->gate.turn != turn) return;
  tenant->drained = true;
  decide();
}

void TurnScheduler::idle(TenantId id, Time at) {
  advance(at);
  auto* tenant = find(id);
  if (tenant == nullptr || !tenant->busy) return;
  tenant->last_burst = tenant->burst;
  charge_visit(id, *tenant);
  tenant->busy = false;
  tenant->drained = true;
  tenant->express_credit_left = 0;
  tenant->last_busy = now_;
  normalize_lags(tenant->time_policy.priority);
  decide();
}

void TurnScheduler::set_kernel_time(TenantId id, Time kernel) {
  auto* tenant = find(id);
  if (tenant != nullptr) tenant->kernel = std::max(ns(kernel), 0.0);
}

void TurnScheduler::charge(TenantId id, Time unreported, Time now) {
  advance(now);
  auto* tenant = find(id);
  if (tenant == nullptr || unreported <= Time::zero()) return;
  charge_tenant(id, *tenant, ns(unreported));
  tenant->corrected += ns(unreported);
  decide();
}

void TurnScheduler::tick(Time now) {
  advance(now);
  decide();
}

void TurnScheduler::resume(Time now) {
  if (now <= now_) return;
  now_ = now;
  for (auto& [id, tenant] : tenants_) {
    tenant.shut_at = now_;  // the wait until it drains begins again
    if (tenant.busy) tenant.last_busy = now_;
  }
  decide();
}

std::size_t TurnScheduler::on_gpu() const {
  return static_cast<std::size_t>(std::count_if(
      tenants_.begin(), tenants_.end(), [](const auto& entry) { return entry.second.on_gpu(); }));
}

void TurnScheduler::charge_tenant(TenantId id, Tenant& tenant, double amount) {
  tenant.used += amount;
  tenant.credit -= amount;
  tenant.express_credit_left -= amount;
  tenant.burst += amount;
  if (turn_holder_ == id) turn_left_ -= amount;
  if (tenant.capped()) {
    tenant.credit = std::max(tenant.credit, -ns(pace_.max_debt));
    return;
  }
  // Without a cap, time that others left unused is not a debt.
  tenant.credit = std::max(tenant.credit, -credit_limit(tenant));
  tenant.lag = std::max(tenant.lag - amount, -ns(pace_.max_debt));
  if (tenant.busy) distribute_used_time(tenant.time_policy.priority, amount);
}

// If others have work, even a short visit takes the GPU from them for a while. It is charged for
// that, but not as used time.
void TurnScheduler::charge_visit(TenantId id, Tenant& tenant) {
  const double rest = ns(pace_.min_visit_charge) - tenant.burst;
  const bool others = std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    return entry.first != id && entry.second.busy;
  });
  if (!others || rest <= 0) return;
  charge_tenant(id, tenant, rest);
  tenant.used -= rest;
}

// The time that greedy tenants of one priority used is what all of them together were entitled to.
void TurnScheduler::distribute_used_time(Priority priority, double used) {
  double parts = 0;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.time_policy.priority == priority)
      parts += tenant.part;
  }
  if (parts <= 0) return;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.time_policy.priority == priority) {
      tenant.lag += used * tenant.part / parts;
    }
  }
}

// Only the differences between lags matter. When a tenant leaves, its lag is removed and the sum of
// the others is set to zero again, so that a new tenant, which begins with zero, is neither behind
// nor ahead of them.
void TurnScheduler::normalize_lags(Priority priority) {
  double sum = 0;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.time_policy.priority == priority)
      sum += tenant.lag;
  }
  distribute_used_time(priority, -sum);
}

// GPU time is charged to the tenants that may have work there, in equal parts if there are several,
// because the hardware slices time between them. But a tenant whose gate is shut has only the work
// that was in flight; after that should be done, the rest is charged to the others. The tenant
// claims this, so it is trusted only for a moment.
void TurnScheduler::charge_elapsed(double elapsed) {
  const auto count = on_gpu();
  if (count == 0) return;
  const double each = elapsed / static_cast<double>(count);
  double rest = elapsed;
  std::size_t open = 0;
  for (const auto& [id, tenant] : tenants_) open += tenant.on_gpu() && tenant.is_open() ? 1 : 0;
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.on_gpu() || tenant.is_open()) continue;
    const bool believed = open > 0 && now_ - tenant.shut_at < pace_.drain_bound;
    const double amount = believed ? std::min(each, tenant.tail) : each;
    tenant.tail = std::max(tenant.tail - amount, 0.0);
    rest -= amount;
    charge_tenant(id, tenant, amount);
  }
  for (auto& [id, tenant] : tenants_) {
    if (tenant.on_gpu() && tenant.is_open())
      charge_tenant(id, tenant, rest / static_cast<double>(open));
  }
}

// Every tenant earns its part of all time.
void TurnScheduler::advance(Time to) {
  if (to <= now_) return;
  const double elapsed = ns(to - now_);
  charge_elapsed(elapsed);
  now_ = to;
  for (auto& [id, tenant] : tenants_) {
    const double earned = tenant.part * elapsed;
    tenant.credit = std::min(tenant.credit + earned, credit_limit(tenant));
    if (!tenant.busy) tenant.lag = std::min(tenant.lag + earned, 0.0);
    if (tenant.busy) tenant.last_busy = now_;
  }
}

// Bounded, so that no tenant can save up for a burst that disturbs others.
// Not empty, so that its first launch need not wait; not full, because it has not saved anything
// yet.
double TurnScheduler::first_credit(const Tenant& tenant) const {
  return std::min(credit_limit(tenant), 2 * ns(pace_.min_express_credit));
}

double TurnScheduler::credit_limit(const Tenant& tenant) const {
  return std::clamp(tenant.part * ns(pace_.credit_window), 2 * ns(pace_.min_express_credit),
                    ns(pace_.max_credit));
}

// A whole turn under a cap needs savings for what the turn costs beyond what the tenant earns
// during it.
double TurnScheduler::turn_credit(const Tenant& tenant) const {
  return std::min(ns(pace_.shortest_turn) * (1 - tenant.part), 0.9 * credit_limit(tenant));
}

bool TurnScheduler::may_become_express(const Tenant& tenant) const {
  return tenant.credit >= ns(pace_.min_express_credit);
}

bool TurnScheduler::short_burst(const Tenant& tenant) const {
  return std::max(tenant.last_burst, tenant.burst) <= ns(pace_.short_burst);
}

// A waiting tenant that never works for long comes first as soon as its savings suffice for its
// usual work. So it gets its share in small pieces, not in turns.
double TurnScheduler::express_credit(const Tenant& tenant) const {
  if (!short_burst(tenant)) return std::numeric_limits<double>::infinity();
  return std::max(ns(pace_.min_express_credit), tenant.last_burst);
}

void TurnScheduler::order(Tenant& tenant, Gate gate) {
  if (tenant.gate.gate == gate) return;
  if (gate == Gate::Shut) {
    tenant.gate.turn = (tenant.gate.turn + 1) & kTurnMask;
    tenant.shut_at = now_;
    tenant.drained = !tenant.busy;
    const double queue = tenant.gate.gate == Gate::One ? 0 : ns(pace_.queue);
    tenant.tail = tenant.kernel > 0 ? std::max(tenant.kernel, queue) : ns(pace_.max_debt);
  }
  tenant.gate.gate = gate;
  tenant.told = false;
}

std::vector<GateChange> TurnScheduler::take_gate_changes() {
  std::vector<GateChange> orders;
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.told) orders.push_back({id, tenant.gate});
    tenant.told = true;
  }
  std::stable_partition(orders.begin(), orders.end(),
                        [](const GateChange& order) { return order.gate.gate == Gate::Shut; });
  return orders;
}

GateState TurnScheduler::gate(TenantId id) const {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? GateState{} : found->second.gate;
}

std::optional<TenantView> TurnScheduler::view(TenantId id) const {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return std::nullopt;
  const auto& tenant = found->second;
  const bool stays = tenant.on_gpu() && tenant.gate.gate == Gate::Shut;
  return TenantView{.part = tenant.part,
                    .busy = tenant.busy,
                    .express = tenant.express(),
                    .gate = tenant.gate,
                    .used = Time(std::llround(tenant.used)),
                    .corrected = Time(std::llround(tenant.corrected)),
                    .credit = Time(std::llround(tenant.credit)),
                    .overstayed = stays ? now_ - tenant.shut_at : Time::zero()};
}

}  // namespace gantry::policy
