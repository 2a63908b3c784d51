// SPDX-License-Identifier: Apache-2.0
// Who may use a GPU now: the scheduler of turns, one for each GPU. Pure: moments and reports come
// in, gates come out. docs/decisions/0020-turns-of-a-gpu.md says why it is like this.
//
// A tenant is a share, not a process. For one with several processes the caller reports `active`
// when the first becomes busy, `drained` when all have drained, `idle` when none is busy.
//
// Three kinds of tenants, told apart by what they do, not by what they say:
//   express  was idle, has used less than its share lately, now has work. Its gate was open all
//            along, so nothing waited; all others are shut until it is idle again or its savings
//            are spent.
//   greedy   has more work than time. The greedy take turns: one of them has the GPU.
//   idle     costs nobody anything.
#pragma once

#include "sharing/policy/time_policy.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace gantry::policy {

using TenantId = std::uint32_t;  // the caller's number for a share

enum class Gate : std::uint8_t { Open, One, Shut };  // numbered as FenceGate

// `turn` goes up whenever the gate is shut: a report of being drained names the shutting that it
// answers.
struct GateState {
  Gate gate = Gate::Shut;
  std::uint32_t turn = 0;  // below 2^30
  bool operator==(const GateState&) const = default;
};

struct GateChange {
  TenantId tenant = 0;
  GateState gate;
  bool operator==(const GateChange&) const = default;
};

// Measured on an H200: each change of hands costs 0.4 to 0.5 ms. Rounds of 150 ms, 30:70,
// have 99.25 % of the time of one alone, of 240 ms 99.55 %.
struct SchedulerTuning {
  Time round = std::chrono::milliseconds(200);  // divided by parts, where turns get not too short
  Time shortest_turn = std::chrono::milliseconds(20);
  Time longest_turn = std::chrono::milliseconds(65);
  Time queue = std::chrono::milliseconds(4);  // work in flight of a tenant whose gate is open
  Time drain_bound = std::chrono::milliseconds(50);  // then the next one opens all the same
  Time express_return_window =
      std::chrono::seconds(1);  // an express tenant is expected back for this long
  Time credit_window = std::chrono::milliseconds(300);     // a tenant can save its part of this,
  Time max_credit = std::chrono::milliseconds(50);         // and no more than this
  Time min_express_credit = std::chrono::milliseconds(1);  // to be express takes this much
  Time short_burst =
      std::chrono::milliseconds(5);  // who works this long and is idle again is in a hurry
  Time short_pause = std::chrono::milliseconds(5);  // a pause this short is not worth a sleep
  // What it costs others at least when somebody comes and goes: the GPU changes hands twice.
  Time min_visit_charge = std::chrono::microseconds(250);
  Time max_debt = std::chrono::seconds(10);
};

// What people and metrics see.
struct TenantView {
  double part = 0;  // of the GPU's time, as it is now entitled to
  bool busy = false;
  bool express = false;
  GateState gate;
  Time used{0};        // charged since it was added
  Time corrected{0};   // of that by charge()
  Time credit{0};      // unused share; debt when negative
  Time overstayed{0};  // how long it has been told to leave the GPU and has not
};

class TurnScheduler {
 public:
  explicit TurnScheduler(const SchedulerTuning& pace = {}) : pace_(pace) {}

  // Time must not go back from call to call; a moment before the last one counts as the last one.
  // Reports of tenants that are not there are ignored: they crossed with a removal.
  void add(TenantId id, const TimePolicy& time_policy, Time now);
  void change(TenantId id, const TimePolicy& time_policy, Time now);
  void remove(TenantId id, Time now);

  void active(TenantId id, Time at);
  void drained(TenantId id, std::uint32_t turn, Time at);
  void idle(TenantId id, Time at);
  // How long its kernels take: what it may still have on the GPU when its gate is shut. A claim of
  // the tenant, so it is used only where two are on the GPU, to tell whose time it was.
  void set_kernel_time(TenantId id, Time kernel);
  // GPU time that the tenant used without being charged (Meter finds it).
  void charge(TenantId id, Time unreported, Time now);
  void tick(Time now);

  // Gates that changed since the last call; shut ones first.
  std::vector<GateChange> take_gate_changes();
  // When to tick next if nothing is reported before; nullopt: not needed.
  std::optional<Time> deadline() const;
  // Until when the caller should not sleep while it waits for reports: somebody in a hurry is on
  // the GPU, or will be in a moment, and others have work. To be woken costs both sides more than a
  // gate should take to change.
  Time alert_until() const;

  GateState gate(TenantId id) const;  // shut for a tenant that is not there
  std::optional<TenantView> view(TenantId id) const;

 private:
  struct Tenant {
    TimePolicy time_policy;
    double part = 0;  // of the GPU's time, of 1
    GateState gate{Gate::Open, 0};
    bool told = false;  // the caller knows the gate
    bool busy = false;
    bool drained = true;  // since it was shut
    Time shut_at{0};
    Time last_busy = Time::min();
    Time busy_since = Time::min();
    Time pause = Time::max();  // between two spells, usually
    // In nanoseconds of GPU time:
    double credit = 0;  // its part of all time less what it used, bounded both ways
    double lag = 0;     // greedy, work-conserving: what it is behind the others of its priority
    double used = 0;
    double corrected = 0;
    double kernel = 0;  // what one takes; 0: not known
    double tail = 0;    // shut: what it can still have in flight
    double burst = 0;   // used since it became busy
    double last_burst = std::numeric_limits<double>::infinity();  // until it was idle, last time
    double express_credit_left =
        0;  // what it had saved when it became express, less what it used since

    bool express() const { return express_credit_left > 0; }
    bool capped() const { return time_policy.excess == Excess::Refused; }
    bool is_open() const { return gate.gate != Gate::Shut; }
    bool on_gpu() const { return busy && (gate.gate != Gate::Shut || !drained); }
  };
  using Tenants = std::map<TenantId, Tenant>;

  // What all gates depend on.
  struct GpuSituation {
    std::optional<Priority> express;  // the highest of those who are
    bool quiet = true;                // nobody is busy
    bool expected = false;            // somebody who would be express was here a moment ago
  };

  Tenant* find(TenantId id);
  void set_parts();
  void advance(Time to);
  void charge_elapsed(double elapsed);
  void charge_tenant(TenantId id, Tenant& tenant, double amount);
  void charge_visit(TenantId id, Tenant& tenant);
  void distribute_used_time(Priority priority, double used);
  void normalize_lags(Priority priority);
  void learn_pause(Tenant& tenant) const;
  std::size_t on_gpu() const;
  double credit_limit(const Tenant& tenant) const;
  double turn_credit(const Tenant& tenant) const;
  bool may_become_express(const Tenant& tenant) const;
  bool short_burst(const Tenant& tenant) const;
  double express_credit(const Tenant& tenant) const;

  void decide();
  void choose_express();
  void choose_holder();
  std::optional<TenantId> pick_next() const;
  std::optional<Priority> top_priority() const;
  bool is_turn_due(const Tenant& tenant, std::optional<Priority> top) const;
  double turn_length(const Tenant& tenant) const;
  GpuSituation gpu_situation() const;
  Gate wanted_gate(TenantId id, const Tenant& tenant, const GpuSituation& gpu_situation) const;
  bool can_open(TenantId id) const;
  void order(Tenant& tenant, Gate gate);
  double time_to_change(const Tenant& tenant, double each) const;

  SchedulerTuning pace_;
  Tenants tenants_;
  Time now_{0};
  std::optional<TenantId> turn_holder_;  // the greedy one whose turn it is
  double turn_left_ = 0;
};

}  // namespace gantry::policy
