// SPDX-License-Identifier: Apache-2.0
// Who has the GPU: decided anew after every report, from the accounts alone.
#include "share/controller.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gantry::share {
namespace {

double ns(Time time) {
  return static_cast<double>(time.count());
}

}  // namespace

void Controller::decide() {
  choose_holder();
  set_gates();
}

bool Controller::may_express(const Tenant& tenant) const {
  return tenant.saved >= ns(pace_.least_savings);
}

bool Controller::any_express() const {
  return std::any_of(tenants_.begin(), tenants_.end(),
                     [](const auto& entry) { return entry.second.express(); });
}

// To run a whole turn under a cap takes savings for what the turn costs beyond what is earned
// during it.
double Controller::enough_saved(const Tenant& tenant) const {
  return std::min(ns(pace_.shortest_turn) * (1 - tenant.part), most_saved(tenant) * 0.9);
}

std::optional<Priority> Controller::top_priority() const {
  std::optional<Priority> top;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && (!top || tenant.rights.priority > *top)) {
      top = tenant.rights.priority;
    }
  }
  return top;
}

// Tenants whose part is due by the clock: those with a cap, and those who would otherwise only get
// what a higher priority leaves. They can take no more than their part.
bool Controller::owed(const Tenant& tenant, Priority top) const {
  const bool by_clock = tenant.capped() || tenant.rights.priority < top;
  return tenant.busy && by_clock && tenant.saved >= enough_saved(tenant);
}

// The next turn: whoever is owed most, else the one of the highest priority who is most behind.
std::optional<TenantId> Controller::pick() const {
  const auto top = top_priority();
  std::optional<TenantId> best;
  double most = 0;
  const auto consider = [&](TenantId id, double claim) {
    if (best && (claim < most || (claim == most && id == holder_))) return;
    best = id;
    most = claim;
  };
  for (const auto& [id, tenant] : tenants_) {
    if (owed(tenant, top.value_or(Priority::High))) consider(id, tenant.saved / tenant.part);
  }
  if (best) return best;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped() && tenant.rights.priority == top) {
      consider(id, tenant.lag / tenant.part);
    }
  }
  return best;
}

// Long where shares are large, so that few hand-overs are needed; not longer, so that small ones
// need not wait for seconds.
double Controller::turn_length(const Tenant& tenant) const {
  double parts = 0;
  for (const auto& [id, other] : tenants_) {
    if (other.busy) parts += other.part;
  }
  const double turn = std::clamp(ns(pace_.round) * tenant.part / std::max(parts, tenant.part),
                                 ns(pace_.shortest_turn), ns(pace_.longest_turn));
  // Whoever is owed a part by the clock, beside somebody of higher priority, gets that and no more.
  const bool outranked = !tenant.capped() && tenant.rights.priority < *top_priority();
  return outranked ? std::min(turn, tenant.saved / (1 - tenant.part)) : turn;
}

// A turn goes on through interruptions by express tenants; it ends when it is used up, with the
// tenant's work, or with its cap.
void Controller::choose_holder() {
  if (holder_) {
    const auto& tenant = tenants_.at(*holder_);
    const bool spent = tenant.capped() && tenant.saved <= 0;
    if (!tenant.busy || tenant.express() || spent) holder_.reset();
  }
  if (holder_ && turn_left_ > 0) return;
  holder_ = pick();
  if (holder_) turn_left_ = turn_length(tenants_.at(*holder_));
}

bool Controller::somebody_about() const {
  return std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    const auto& tenant = entry.second;
    return !tenant.busy && tenant.last_busy != Time::min() && may_express(tenant) &&
           now_ - tenant.last_busy < pace_.about;
  });
}

// Whether the greedy tenant would have the GPU to itself, or the others had their time to leave it.
bool Controller::room_for(TenantId id) const {
  return std::all_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    const auto& other = entry.second;
    if (entry.first == id || !other.on_gpu()) return true;
    return other.gate.gate == Gate::Shut && now_ - other.shut_at >= pace_.drain_bound;
  });
}

Gate Controller::wanted(TenantId id, const Tenant& tenant) const {
  if (!tenant.busy) {
    if (may_express(tenant)) return Gate::Open;
    const bool quiet = std::none_of(tenants_.begin(), tenants_.end(),
                                    [](const auto& entry) { return entry.second.busy; });
    return quiet && !tenant.capped() ? Gate::Open : Gate::Shut;
  }
  if (tenant.express()) {
    const bool outranked = std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
      return entry.second.express() && entry.second.rights.priority > tenant.rights.priority;
    });
    return outranked ? Gate::Shut : Gate::Open;
  }
  if (any_express() || holder_ != id) return Gate::Shut;
  return somebody_about() ? Gate::One : Gate::Open;
}

// First all that shut, then who opens: the order in which the GPU changes hands.
void Controller::set_gates() {
  for (auto& [id, tenant] : tenants_) {
    if (wanted(id, tenant) == Gate::Shut) order(tenant, Gate::Shut);
  }
  for (auto& [id, tenant] : tenants_) {
    const auto gate = wanted(id, tenant);
    const bool from_shut = tenant.gate.gate == Gate::Shut;
    const bool waits = from_shut && id == holder_ && !tenant.express() && !room_for(id);
    if (gate != Gate::Shut && !waits) order(tenant, gate);
  }
}

// Nanoseconds until this tenant's account alone changes what is to be done.
double Controller::time_to_change(const Tenant& tenant, double per_tenant) const {
  double soonest = std::numeric_limits<double>::infinity();
  const double rate = tenant.part - (tenant.on_gpu() ? per_tenant : 0);
  const auto reaches = [&](double level) {
    const double time = (level - tenant.saved) / rate;
    if (rate != 0 && time > 0) soonest = std::min(soonest, time);
  };
  if (tenant.on_gpu() && tenant.capped()) reaches(0);
  if (tenant.on_gpu() && tenant.express()) {
    soonest = std::min(soonest, tenant.express_left / per_tenant);
  }
  if (tenant.busy && !tenant.on_gpu()) reaches(enough_saved(tenant));
  if (!tenant.busy) reaches(ns(pace_.least_savings));
  const auto in = [&](Time moment) {
    if (moment > now_) soonest = std::min(soonest, ns(moment - now_));
  };
  if (tenant.on_gpu() && tenant.gate.gate == Gate::Shut) in(tenant.shut_at + pace_.drain_bound);
  if (!tenant.busy && tenant.last_busy != Time::min()) in(tenant.last_busy + pace_.about);
  return soonest;
}

std::optional<Time> Controller::deadline() const {
  const auto count = on_gpu();
  const double per_tenant = count > 0 ? 1 / static_cast<double>(count) : 0;
  double soonest = std::numeric_limits<double>::infinity();
  for (const auto& [id, tenant] : tenants_) {
    soonest = std::min(soonest, time_to_change(tenant, per_tenant));
    if (holder_ == id && tenant.on_gpu() && tenants_.size() > 1) {
      soonest = std::min(soonest, std::max(turn_left_, 0.0) / per_tenant);
    }
  }
  if (soonest > ns(pace_.most_debt) * 100) return std::nullopt;
  // Rounded up, so that what is waited for has come then.
  return now_ + Time(std::llround(std::ceil(soonest)) + 1);
}

}  // namespace gantry::share
