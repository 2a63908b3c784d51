// SPDX-License-Identifier: Apache-2.0
// Decides which tenant may use a GPU now; there is one turn scheduler for each GPU. Pure: times and
// reports come in, gates come out. docs/decisions/0020-turns-of-a-gpu.md gives the reasons for the
// design.
//
// A tenant is a share, not a process. If it has several processes, the caller reports `active` when
// the first becomes busy, `drained` when all have drained, and `idle` when none is busy.
//
// There are three kinds of tenants, told apart by their behaviour, not by what they report:
//   express  was idle, has used less than its share lately, and now has work. Its gate was open all
//            along, so nothing waited; all others are shut until it is idle again or its savings
//            are spent.
//   greedy   has more work than time. Greedy tenants take turns: one of them has the GPU.
//   idle     has no work.
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

// `turn` increases whenever the gate is shut: a `drained` report names the turn that it answers.
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

// Measured on an H200: each switch between tenants costs 0.4 to 0.5 ms. With rounds of 150 ms,
// 30:70, tenants get 99.25 % of the time that one alone gets; with 240 ms, 99.55 %.
struct SchedulerTuning {
  Time round = std::chrono::milliseconds(200);  // divided in proportion, unless turns get too short
  Time shortest_turn = std::chrono::milliseconds(20);
  Time longest_turn = std::chrono::milliseconds(65);
  Time queue = std::chrono::milliseconds(4);  // work in flight of a tenant whose gate is open
  Time drain_bound = std::chrono::milliseconds(50);        // after this the next gate opens anyway
  Time express_return_window = std::chrono::seconds(1);    // an express tenant may return
  Time credit_window = std::chrono::milliseconds(300);     // a tenant can save up its part of this,
  Time max_credit = std::chrono::milliseconds(50);         // but no more than this
  Time min_express_credit = std::chrono::milliseconds(1);  // a tenant needs this much to be express
  Time short_burst = std::chrono::milliseconds(5);         // shorter work is urgent
  Time short_pause = std::chrono::milliseconds(5);         // do not sleep for a pause this short
  // The least that a short visit costs the others: the GPU switches twice.
  Time min_visit_charge = std::chrono::microseconds(250);
  Time max_debt = std::chrono::seconds(10);
};

// For display and metrics.
struct TenantView {
  double part = 0;  // its current part of the GPU's time
  bool busy = false;
  bool express = false;
  GateState gate;
  Time used{0};        // charged in total
  Time corrected{0};   // the part of it from charge()
  Time credit{0};      // unused time; debt if negative
  Time overstayed{0};  // how long ago it was told to leave the GPU, if it has not left
};

class TurnScheduler {
 public:
  explicit TurnScheduler(const SchedulerTuning& pace = {}) : pace_(pace) {}

  // Time must not go back between calls; an earlier time counts as the last one. Reports of unknown
  // tenants are ignored: the tenant may have been removed meanwhile.
  void add(TenantId id, const TimePolicy& time_policy, Time now);
  void change(TenantId id, const TimePolicy& time_policy, Time now);
  void remove(TenantId id, Time now);

  void active(TenantId id, Time at);
  void drained(TenantId id, std::uint32_t turn, Time at);
  void idle(TenantId id, Time at);
  // How long its kernels take, so how much work it may still have on the GPU after its gate is
  // shut. The tenant claims this value, so it is used only if two tenants are on the GPU, to divide
  // the time between them.
  void set_kernel_time(TenantId id, Time kernel);
  // GPU time that the tenant used without being charged (Meter finds it).
  void charge(TenantId id, Time unreported, Time now);
  void tick(Time now);
  // Until now there was no call, although gates had to change: the tenants controlled themselves,
  // so none is charged and none saves.
  void resume(Time now);

  // The gates that changed since the last call; shut ones first.
  std::vector<GateChange> take_gate_changes();
  // When to call tick next if nothing is reported before; nullopt: not needed.
  std::optional<Time> deadline() const;
  // Until when the caller should poll instead of sleeping while it waits for reports: an urgent
  // tenant is on the GPU, or will be in a moment, and others have work. Waking up takes both sides
  // longer than a gate should take to change.
  Time alert_until() const;

  GateState gate(TenantId id) const;  // shut for an unknown tenant
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
    Time pause = Time::max();  // usual time between two periods of work
    // In nanoseconds of GPU time:
    double credit = 0;  // its part of all time minus what it used, with bounds
    double lag = 0;     // greedy, work-conserving: how far it is behind others of its priority
    double used = 0;
    double corrected = 0;
    double kernel = 0;  // time of one kernel; 0: unknown
    double tail = 0;    // shut: work that may still be in flight
    double burst = 0;   // used since it became busy
    double last_burst = std::numeric_limits<double>::infinity();  // length of the last busy period
    double express_credit_left = 0;  // its savings when it became express, minus what it used since

    bool express() const { return express_credit_left > 0; }
    bool capped() const { return time_policy.excess == Excess::Refused; }
    bool is_open() const { return gate.gate != Gate::Shut; }
    bool on_gpu() const { return busy && (gate.gate != Gate::Shut || !drained); }
  };
  using Tenants = std::map<TenantId, Tenant>;

  // The state that all gates depend on.
  struct GpuSituation {
    std::optional<Priority> express;  // the highest priority among them
    bool quiet = true;                // no tenant is busy
    bool expected = false;            // a tenant that would be express was here a moment ago
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
  double first_credit(const Tenant& tenant) const;
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
  std::optional<TenantId> turn_holder_;  // the greedy tenant whose turn it is
  double turn_left_ = 0;
};

}  // namespace gantry::policy
