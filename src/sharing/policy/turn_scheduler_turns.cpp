// SPDX-License-Identifier: Apache-2.0
// Decides which tenant has the GPU: again after every report, and only from the accounts.
#include "sharing/policy/turn_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gantry::policy {
namespace {

constexpr double kLongestWait = ns(std::chrono::hours(1));

}  // namespace

// First all gates that shut, then those that open: the order in which the GPU switches.
void TurnScheduler::decide() {
  choose_express();
  choose_holder();
  const auto now = gpu_situation();
  for (auto& [id, tenant] : tenants_) {
    if (wanted_gate(id, tenant, now) == Gate::Shut) order(tenant, Gate::Shut);
  }
  for (auto& [id, tenant] : tenants_) {
    const auto gate = wanted_gate(id, tenant, now);
    const bool waited = tenant.busy && !tenant.is_open();
    if (waited && !can_open(id)) continue;
    order(tenant, gate);
  }
}

void TurnScheduler::choose_express() {
  for (auto& [id, tenant] : tenants_) {
    const bool waits = tenant.busy && !tenant.express() && !tenant.is_open();
    if (waits && tenant.credit >= express_credit(tenant))
      tenant.express_credit_left = tenant.credit;
  }
}

std::optional<Priority> TurnScheduler::top_priority() const {
  std::optional<Priority> top;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.busy && !tenant.capped())
      top = std::max(top, std::optional(tenant.time_policy.priority));
  }
  return top;
}

// Tenants whose part is due by time: those with a cap, and those that would otherwise get only what
// a higher priority leaves. They can get no more than their part.
bool TurnScheduler::is_turn_due(const Tenant& tenant, std::optional<Priority> top) const {
  const bool by_clock = tenant.capped() || tenant.time_policy.priority < top;
  return tenant.busy && by_clock && tenant.credit >= turn_credit(tenant);
}

// The next turn goes to the tenant that is owed most, else to the one of the highest priority that
// is most behind. Both are measured relative to the tenant's part, so that a small share is served
// as soon as a large one.
std::optional<TenantId> TurnScheduler::pick_next() const {
  const auto top = top_priority();
  std::optional<TenantId> best;
  double most = 0;
  const auto consider = [&](TenantId id, double claim) {
    const bool better = !best || claim > most || (claim == most && best == turn_holder_);
    if (!better) return;
    best = id;
    most = claim;
  };
  for (const auto& [id, tenant] : tenants_) {
    if (is_turn_due(tenant, top)) consider(id, tenant.credit / tenant.part);
  }
  if (best) return best;
  for (const auto& [id, tenant] : tenants_) {
    const bool first = tenant.busy && !tenant.capped() && tenant.time_policy.priority == top;
    if (first) consider(id, tenant.lag / tenant.part);
  }
  return best;
}

// Turns are long if shares are large, so that few switches are needed, but bounded, so that small
// shares do not wait for seconds.
double TurnScheduler::turn_length(const Tenant& tenant) const {
  double parts = 0;
  for (const auto& [id, other] : tenants_) {
    if (other.busy) parts += other.part;
  }
  const double turn = std::clamp(ns(pace_.round) * tenant.part / parts, ns(pace_.shortest_turn),
                                 ns(pace_.longest_turn));
  // A tenant that is owed its part next to a tenant of higher priority gets its part and no more.
  const bool outranked = !tenant.capped() && tenant.time_policy.priority < top_priority();
  return outranked ? std::min(turn, tenant.credit / (1 - tenant.part)) : turn;
}

// A turn continues after interruptions by express tenants. It ends when it is used up, when the
// tenant has no more work, or at its cap.
void TurnScheduler::choose_holder() {
  if (turn_holder_) {
    const auto& tenant = tenants_.at(*turn_holder_);
    const bool spent = tenant.capped() && tenant.credit <= 0;
    if (!tenant.busy || tenant.express() || spent) turn_holder_.reset();
  }
  if (turn_holder_ && turn_left_ > 0) return;
  turn_holder_ = pick_next();
  if (turn_holder_) turn_left_ = turn_length(tenants_.at(*turn_holder_));
}

TurnScheduler::GpuSituation TurnScheduler::gpu_situation() const {
  GpuSituation gpu_situation;
  for (const auto& [id, tenant] : tenants_) {
    gpu_situation.quiet = gpu_situation.quiet && !tenant.busy;
    if (tenant.express()) {
      gpu_situation.express =
          std::max(gpu_situation.express, std::optional(tenant.time_policy.priority));
    }
    const bool was_here =
        tenant.last_busy != Time::min() && now_ - tenant.last_busy < pace_.express_return_window;
    const bool comes_back =
        !tenant.busy && was_here && (short_burst(tenant) || may_become_express(tenant));
    const bool in_a_hurry = tenant.busy && short_burst(tenant) && turn_holder_ != id;
    if (comes_back || in_a_hurry) gpu_situation.expected = true;
  }
  return gpu_situation;
}

Gate TurnScheduler::wanted_gate(TenantId id, const Tenant& tenant,
                                const GpuSituation& gpu_situation) const {
  if (!tenant.busy) {
    // With savings its next launch passes and is express. Without a cap it may also be the first on
    // an idle GPU.
    const bool may_begin = may_become_express(tenant) || (gpu_situation.quiet && !tenant.capped());
    return may_begin ? Gate::Open : Gate::Shut;
  }
  if (tenant.express()) {
    return tenant.time_policy.priority == gpu_situation.express ? Gate::Open : Gate::Shut;
  }
  if (gpu_situation.express || turn_holder_ != id) return Gate::Shut;
  return gpu_situation.expected ? Gate::One : Gate::Open;
}

// True if the tenants whose gates were shut have left the GPU, or had enough time to do so. A
// tenant that waited is not charged for their last kernels.
bool TurnScheduler::can_open(TenantId id) const {
  return std::all_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    const auto& other = entry.second;
    if (entry.first == id || !other.on_gpu() || other.is_open()) return true;
    return now_ - other.shut_at >= pace_.drain_bound;
  });
}

// Nanoseconds until this tenant's account alone changes a decision; `each` is what every tenant on
// the GPU spends per nanosecond.
double TurnScheduler::time_to_change(const Tenant& tenant, double each) const {
  double soonest = std::numeric_limits<double>::infinity();
  const auto in = [&](double time) {
    if (time > 0) soonest = std::min(soonest, time);
  };
  const double rate = tenant.part - (tenant.on_gpu() ? each : 0);
  const auto when_saved = [&](double level) {
    if (rate != 0) in((level - tenant.credit) / rate);
  };
  if (tenant.on_gpu()) {
    if (tenant.capped()) when_saved(0);
    if (tenant.express()) in(tenant.express_credit_left / each);
    if (tenant.gate.gate == Gate::Shut) in(ns(tenant.shut_at + pace_.drain_bound - now_));
  } else if (tenant.busy) {
    when_saved(turn_credit(tenant));
    when_saved(express_credit(tenant));
  } else {
    when_saved(ns(pace_.min_express_credit));
    if (tenant.last_busy != Time::min())
      in(ns(tenant.last_busy + pace_.express_return_window - now_));
  }
  return soonest;
}

// The earliest time at which any account can change a gate: as if the tenants with open gates paid
// for everything.
std::optional<Time> TurnScheduler::deadline() const {
  std::size_t open = 0;
  for (const auto& [id, tenant] : tenants_) open += tenant.on_gpu() && tenant.is_open() ? 1 : 0;
  const double each = 1 / static_cast<double>(std::max<std::size_t>(open, 1));
  double soonest = std::numeric_limits<double>::infinity();
  for (const auto& [id, tenant] : tenants_) {
    soonest = std::min(soonest, time_to_change(tenant, each));
    const bool may_be_relieved = turn_holder_ == id && tenant.on_gpu() && tenants_.size() > 1;
    if (may_be_relieved) soonest = std::min(soonest, std::max(turn_left_, 0.0) / each);
  }
  if (!std::isfinite(soonest)) return std::nullopt;
  // An account that earns and spends at almost the same rate would take years to change. Otherwise
  // the time is rounded up, so that the change has happened by then.
  return now_ + Time(std::llround(std::ceil(std::min(soonest, kLongestWait))) + 1);
}

Time TurnScheduler::alert_until() const {
  const auto busy = std::count_if(tenants_.begin(), tenants_.end(),
                                  [](const auto& entry) { return entry.second.busy; });
  Time until = Time::min();
  for (const auto& [id, tenant] : tenants_) {
    const bool others = busy > (tenant.busy ? 1 : 0);
    if (!others || !short_burst(tenant)) continue;
    if (tenant.express()) until = std::max(until, tenant.busy_since + pace_.short_burst);
    if (!tenant.busy && tenant.pause <= pace_.short_pause)
      until = std::max(until, tenant.last_busy + 2 * tenant.pause);
  }
  return until;
}

}  // namespace gantry::policy
