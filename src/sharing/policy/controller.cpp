// SPDX-License-Identifier: Apache-2.0
// What is reported, and the accounts. turns.cpp decides from them.
#include "sharing/policy/controller.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::policy {
namespace {

constexpr std::uint32_t kTurnMask = (std::uint32_t{1} << 30) - 1;
constexpr double kLeastForWeights = 0.01;  // however much the per cents take
constexpr double kPriorityFactor = 10;     // a step of priority, among tenants by weight

double weight_of(const Rights& rights) {
  return rights.weight * std::pow(kPriorityFactor, static_cast<double>(rights.priority));
}

}  // namespace

Controller::Tenant* Controller::find(TenantId id) {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? nullptr : &found->second;
}

// Per cents are of all time; tenants by weight share the rest. Promised twice, all shrink alike.
void Controller::set_parts() {
  double percents = 0;
  double weights = 0;
  for (const auto& [id, tenant] : tenants_) {
    percents += tenant.rights.percent / 100.0;
    if (tenant.rights.percent == 0) weights += weight_of(tenant.rights);
  }
  const double rest = weights > 0 ? std::max(1 - percents, kLeastForWeights) : 0;
  const double whole = std::max(1.0, percents + rest);
  for (auto& [id, tenant] : tenants_) {
    const double part = tenant.rights.percent != 0 ? tenant.rights.percent / 100.0
                                                   : rest * weight_of(tenant.rights) / weights;
    tenant.part = part / whole;
  }
}

void Controller::add(TenantId id, const Rights& rights, Time now) {
  advance(now);
  auto& tenant = tenants_[id];
  tenant = {};
  tenant.rights = rights;
  set_parts();
  // Not empty, so that its first launch need not wait; not full, because it was not here to save.
  tenant.saved = std::min(most_saved(tenant), 2 * ns(pace_.least_savings));
  decide();
}

void Controller::change(TenantId id, const Rights& rights, Time now) {
  advance(now);
  auto* tenant = find(id);
  if (tenant == nullptr) return;
  settle_lags(tenant->rights.priority);
  if (tenant->rights.priority != rights.priority) tenant->lag = 0;
  tenant->rights = rights;
  set_parts();
  decide();
}

void Controller::remove(TenantId id, Time now) {
  advance(now);
  auto* tenant = find(id);
  if (tenant == nullptr) return;
  const auto priority = tenant->rights.priority;
  tenants_.erase(id);
  if (holder_ == id) holder_.reset();
  set_parts();
  settle_lags(priority);
  decide();
}

void Controller::learn_pause(Tenant& tenant) const {
  if (tenant.last_busy == Time::min()) return;
  const auto pause = now_ - tenant.last_busy;
  tenant.pause = tenant.pause == Time::max() ? pause : (3 * tenant.pause + pause) / 4;
}

void Controller::active(TenantId id, Time at) {
  advance(at);
  auto* tenant = find(id);
  if (tenant == nullptr || tenant->busy) return;
  // A debt is still a debt; being owed something ends with having nothing to do.
  tenant->lag = std::min(tenant->lag, 0.0);
  tenant->express_left = may_express(*tenant) ? tenant->saved : 0;
  tenant->spell = 0;
  tenant->busy = true;
  tenant->drained = true;
  learn_pause(*tenant);
  tenant->busy_since = tenant->last_busy = now_;
  decide();
}

void Controller::drained(TenantId id, std::uint32_t turn, Time at) {
  advance(at);
  auto* tenant = find(id);
  if (tenant == nullptr || tenant->gate.gate != Gate::Shut || tenant->gate.turn != turn) return;
  tenant->drained = true;
  decide();
}

void Controller::idle(TenantId id, Time at) {
  advance(at);
  auto* tenant = find(id);
  if (tenant == nullptr || !tenant->busy) return;
  tenant->last_spell = tenant->spell;
  charge_visit(id, *tenant);
  tenant->busy = false;
  tenant->drained = true;
  tenant->express_left = 0;
  tenant->last_busy = now_;
  settle_lags(tenant->rights.priority);
  decide();
}

void Controller::learned(TenantId id, Time kernel) {
  auto* tenant = find(id);
  if (tenant != nullptr) tenant->kernel = std::max(ns(kernel), 0.0);
}

void Controller::charge(TenantId id, Time unreported, Time now) {
  advance(now);
  auto* tenant = find(id);
  if (tenant == nullptr || unreported <= Time::zero()) return;
  spend(id, *tenant, ns(unreported));
  tenant->corrected += ns(unreported);
  decide();
}

void Controller::tick(Time now) {
  advance(now);
  decide();
}

std::size_t Controller::on_gpu() const {
  return static_cast<std::size_t>(std::count_if(
      tenants_.begin(), tenants_.end(), [](const auto& entry) { return entry.second.on_gpu(); }));
}

void Controller::spend(TenantId id, Tenant& tenant, double amount) {
  tenant.used += amount;
  tenant.saved -= amount;
  tenant.express_left -= amount;
  tenant.spell += amount;
  if (holder_ == id) turn_left_ -= amount;
  if (tenant.capped()) {
    tenant.saved = std::max(tenant.saved, -ns(pace_.most_debt));
    return;
  }
  // Without a cap, what was left over by others is no debt that time must repay.
  tenant.saved = std::max(tenant.saved, -most_saved(tenant));
  tenant.lag = std::max(tenant.lag - amount, -ns(pace_.most_debt));
  if (tenant.busy) share_out(tenant.rights.priority, amount);
}

// Beside others that have work, to come and to go takes the GPU from them for longer than next to
// nothing: it is paid for, but not as time that was used.
void Controller::charge_visit(TenantId id, Tenant& tenant) {
  const double rest = ns(pace_.least_visit) - tenant.spell;
  const bool others = std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    return entry.first != id && entry.second.busy;
  });
  if (!others || rest <= 0) return;
  spend(id, tenant, rest);
  tenant.used -= rest;
}

// What greedy tenants of one priority used is what all of them were entitled to together.
void Controller::share_out(Priority priority, double used) {
  double parts = 0;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.rights.priority == priority) parts += tenant.part;
  }
  if (parts <= 0) return;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.rights.priority == priority) {
      tenant.lag += used * tenant.part / parts;
    }
  }
}

// Lags compare; only their differences mean anything. Whoever leaves takes its own along, and the
// others' sum is zero again, so that a newcomer, who begins with zero, is not behind or ahead of
// them.
void Controller::settle_lags(Priority priority) {
  double sum = 0;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.rights.priority == priority) sum += tenant.lag;
  }
  share_out(priority, -sum);
}

// Time on the GPU is charged to those who may have work there, in equal parts where there are
// several: the hardware slices it between them. But whoever is shut has only what was in flight,
// and once that must be done the rest is the others'. That is a claim, believed for a moment only.
void Controller::charge_elapsed(double elapsed) {
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
    spend(id, tenant, amount);
  }
  for (auto& [id, tenant] : tenants_) {
    if (tenant.on_gpu() && tenant.is_open()) spend(id, tenant, rest / static_cast<double>(open));
  }
}

// Everybody earns its part of all time.
void Controller::advance(Time to) {
  if (to <= now_) return;
  const double elapsed = ns(to - now_);
  charge_elapsed(elapsed);
  now_ = to;
  for (auto& [id, tenant] : tenants_) {
    const double earned = tenant.part * elapsed;
    tenant.saved = std::min(tenant.saved + earned, most_saved(tenant));
    if (!tenant.busy) tenant.lag = std::min(tenant.lag + earned, 0.0);
    if (tenant.busy) tenant.last_busy = now_;
  }
}

// Bounded, so that nobody can save for a burst that others feel.
double Controller::most_saved(const Tenant& tenant) const {
  return std::clamp(tenant.part * ns(pace_.savings), 2 * ns(pace_.least_savings),
                    ns(pace_.most_savings));
}

// To run a whole turn under a cap takes savings for what the turn costs beyond what is earned
// during it.
double Controller::enough_saved(const Tenant& tenant) const {
  return std::min(ns(pace_.shortest_turn) * (1 - tenant.part), 0.9 * most_saved(tenant));
}

bool Controller::may_express(const Tenant& tenant) const {
  return tenant.saved >= ns(pace_.least_savings);
}

bool Controller::brief(const Tenant& tenant) const {
  return std::max(tenant.last_spell, tenant.spell) <= ns(pace_.brief);
}

// One that waits although it never works for long: as soon as its savings will do for what it
// usually does, it comes first. So it has its share in small pieces, not in turns.
double Controller::express_from(const Tenant& tenant) const {
  if (!brief(tenant)) return std::numeric_limits<double>::infinity();
  return std::max(ns(pace_.least_savings), tenant.last_spell);
}

void Controller::order(Tenant& tenant, Gate gate) {
  if (tenant.gate.gate == gate) return;
  if (gate == Gate::Shut) {
    tenant.gate.turn = (tenant.gate.turn + 1) & kTurnMask;
    tenant.shut_at = now_;
    tenant.drained = !tenant.busy;
    const double queue = tenant.gate.gate == Gate::One ? 0 : ns(pace_.queue);
    tenant.tail = tenant.kernel > 0 ? std::max(tenant.kernel, queue) : ns(pace_.most_debt);
  }
  tenant.gate.gate = gate;
  tenant.told = false;
}

std::vector<Order> Controller::take_orders() {
  std::vector<Order> orders;
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.told) orders.push_back({id, tenant.gate});
    tenant.told = true;
  }
  std::stable_partition(orders.begin(), orders.end(),
                        [](const Order& order) { return order.gate.gate == Gate::Shut; });
  return orders;
}

GateState Controller::gate(TenantId id) const {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? GateState{} : found->second.gate;
}

std::optional<TenantView> Controller::view(TenantId id) const {
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
                    .saved = Time(std::llround(tenant.saved)),
                    .overstayed = stays ? now_ - tenant.shut_at : Time::zero()};
}

}  // namespace gantry::policy
