// SPDX-License-Identifier: Apache-2.0
// Who has the GPU: decided anew after every report, from the accounts alone.
#include "sharing/policy/controller.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gantry::policy {
namespace {

constexpr double kLongestWait = ns(std::chrono::hours(1));

}  // namespace

// First all that shut, then who opens: the order in which the GPU changes hands.
void Controller::decide() {
  choose_express();
  choose_holder();
  const auto now = scene();
  for (auto& [id, tenant] : tenants_) {
    if (wanted(id, tenant, now) == Gate::Shut) order(tenant, Gate::Shut);
  }
  for (auto& [id, tenant] : tenants_) {
    const auto gate = wanted(id, tenant, now);
    const bool waited = tenant.busy && !tenant.is_open();
    if (waited && !room_for(id)) continue;
    order(tenant, gate);
  }
}

void Controller::choose_express() {
  for (auto& [id, tenant] : tenants_) {
    const bool waits = tenant.busy && !tenant.express() && !tenant.is_open();
    if (waits && tenant.saved >= express_from(tenant)) tenant.express_left = tenant.saved;
  }
}

std::optional<Priority> Controller::top_priority() const {
  std::optional<Priority> top;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped()) top = std::max(top, std::optional(tenant.rights.priority));
  }
  return top;
}

// Tenants whose part is due by the clock: those with a cap, and those who would otherwise have only
// what a higher priority leaves. They can take no more than their part.
bool Controller::owed(const Tenant& tenant, std::optional<Priority> top) const {
  const bool by_clock = tenant.capped() || tenant.rights.priority < top;
  return tenant.busy && by_clock && tenant.saved >= enough_saved(tenant);
}

// The next turn: whoever is owed most, else the one of the highest priority who is most behind.
// Both in time of its own, so that a small share is served as soon as a large one.
std::optional<TenantId> Controller::pick() const {
  const auto top = top_priority();
  std::optional<TenantId> best;
  double most = 0;
  const auto consider = [&](TenantId id, double claim) {
    const bool better = !best || claim > most || (claim == most && best == holder_);
    if (!better) return;
    best = id;
    most = claim;
  };
  for (const auto& [id, tenant] : tenants_) {
    if (owed(tenant, top)) consider(id, tenant.saved / tenant.part);
  }
  if (best) return best;
  for (const auto& [id, tenant] : tenants_) {
    const bool first = tenant.busy && !tenant.capped() && tenant.rights.priority == top;
    if (first) consider(id, tenant.lag / tenant.part);
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
  const double turn = std::clamp(ns(pace_.round) * tenant.part / parts, ns(pace_.shortest_turn),
                                 ns(pace_.longest_turn));
  // Whoever is owed its part beside somebody of higher priority gets that and no more.
  const bool outranked = !tenant.capped() && tenant.rights.priority < top_priority();
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

Controller::Scene Controller::scene() const {
  Scene scene;
  for (const auto& [id, tenant] : tenants_) {
    scene.quiet = scene.quiet && !tenant.busy;
    if (tenant.express()) {
      scene.express = std::max(scene.express, std::optional(tenant.rights.priority));
    }
    const bool was_here = tenant.last_busy != Time::min() && now_ - tenant.last_busy < pace_.about;
    const bool comes_back = !tenant.busy && was_here && (brief(tenant) || may_express(tenant));
    const bool in_a_hurry = tenant.busy && brief(tenant) && holder_ != id;
    if (comes_back || in_a_hurry) scene.expected = true;
  }
  return scene;
}

Gate Controller::wanted(TenantId id, const Tenant& tenant, const Scene& scene) const {
  if (!tenant.busy) {
    // With savings its next launch goes through and is express. Without a cap it may also be the
    // first on a GPU that nobody uses.
    const bool may_begin = may_express(tenant) || (scene.quiet && !tenant.capped());
    return may_begin ? Gate::Open : Gate::Shut;
  }
  if (tenant.express()) {
    return tenant.rights.priority == scene.express ? Gate::Open : Gate::Shut;
  }
  if (scene.express || holder_ != id) return Gate::Shut;
  return scene.expected ? Gate::One : Gate::Open;
}

// Whether those who were shut have left the GPU, or had their time to do so: whoever has waited
// anyway is not charged for their last kernels.
bool Controller::room_for(TenantId id) const {
  return std::all_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    const auto& other = entry.second;
    if (entry.first == id || !other.on_gpu() || other.is_open()) return true;
    return now_ - other.shut_at >= pace_.drain_bound;
  });
}

// Nanoseconds until this tenant's account alone changes what is to be done; `each` is what everyone
// on the GPU spends in a nanosecond.
double Controller::time_to_change(const Tenant& tenant, double each) const {
  double soonest = std::numeric_limits<double>::infinity();
  const auto in = [&](double time) {
    if (time > 0) soonest = std::min(soonest, time);
  };
  const double rate = tenant.part - (tenant.on_gpu() ? each : 0);
  const auto when_saved = [&](double level) {
    if (rate != 0) in((level - tenant.saved) / rate);
  };
  if (tenant.on_gpu()) {
    if (tenant.capped()) when_saved(0);
    if (tenant.express()) in(tenant.express_left / each);
    if (tenant.gate.gate == Gate::Shut) in(ns(tenant.shut_at + pace_.drain_bound - now_));
  } else if (tenant.busy) {
    when_saved(enough_saved(tenant));
    when_saved(express_from(tenant));
  } else {
    when_saved(ns(pace_.least_savings));
    if (tenant.last_busy != Time::min()) in(ns(tenant.last_busy + pace_.about - now_));
  }
  return soonest;
}

// The soonest that any account can change a gate: as if those who are open paid for everything.
std::optional<Time> Controller::deadline() const {
  std::size_t open = 0;
  for (const auto& [id, tenant] : tenants_) open += tenant.on_gpu() && tenant.is_open() ? 1 : 0;
  const double each = 1 / static_cast<double>(std::max<std::size_t>(open, 1));
  double soonest = std::numeric_limits<double>::infinity();
  for (const auto& [id, tenant] : tenants_) {
    soonest = std::min(soonest, time_to_change(tenant, each));
    const bool may_be_relieved = holder_ == id && tenant.on_gpu() && tenants_.size() > 1;
    if (may_be_relieved) soonest = std::min(soonest, std::max(turn_left_, 0.0) / each);
  }
  if (!std::isfinite(soonest)) return std::nullopt;
  // What is earned and spent at almost the same rate changes in years. Otherwise rounded up, so
  // that what is waited for has come by then.
  return now_ + Time(std::llround(std::ceil(std::min(soonest, kLongestWait))) + 1);
}

Time Controller::alert_until() const {
  const auto busy = std::count_if(tenants_.begin(), tenants_.end(),
                                  [](const auto& entry) { return entry.second.busy; });
  Time until = Time::min();
  for (const auto& [id, tenant] : tenants_) {
    const bool others = busy > (tenant.busy ? 1 : 0);
    if (!others || !brief(tenant)) continue;
    if (tenant.express()) until = std::max(until, tenant.busy_since + pace_.brief);
    if (!tenant.busy && tenant.pause <= pace_.soon)
      until = std::max(until, tenant.last_busy + 2 * tenant.pause);
  }
  return until;
}

}  // namespace gantry::policy
