// SPDX-License-Identifier: Apache-2.0
// Simulates a GPU, its tenants and their fences in virtual time, for tests of the turn scheduler.
// Messages and switches take as long as on an H200: turns of 20 ms lose 1 %.
#pragma once

#include "sharing/policy/turn_scheduler.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <vector>

namespace gantry::policy {

using namespace std::chrono_literals;  // NOLINT: tests are written in times

// The behaviour of a tenant's program.
struct TestProgram {
  Time kernel = 300us;
  Time claim{0};             // the kernel time that it reports; 0: the true one
  Time queue = 4ms;          // work in flight that its fence allows with an open gate
  Time period{0};            // 0: greedy
  Time request{0};           // work that arrives at once, every period
  bool closed_loop = false;  // the period begins when the last request ends
  Time start{0};             // of the first request
  Time stop = Time::max();   // no work from here on
  bool obeys = true;         // false: launches even if the gate is shut
  bool truthful = true;      // false: reports that it has drained although it has not
  bool silent = false;       // never reports that it has drained
  Time jitter{0};            // of the period, up to this much
};

class SimulatedGpu {
 public:
  static constexpr Time kReport = 25us;  // until the daemon knows
  static constexpr Time kOrder = 25us;   // until the fence knows
  static constexpr Time kSwitch = 80us;  // the hardware, between two tenants
  static constexpr Time kSlice = 2ms;    // the hardware's own turns
  static constexpr Time kShort = 100us;  // work that counts as one kernel
  static constexpr Time kLaunch = 8us;   // from the end of a kernel to the next, one at a time
  static constexpr Time kSample = 10ms;

  explicit SimulatedGpu(const SchedulerTuning& pace = {}) : controller_(pace) {}

  void add(TenantId id, const TimePolicy& time_policy, const TestProgram& program);
  void remove(TenantId id);  // killed: its kernels end with it
  void change(TenantId id, const TimePolicy& time_policy);
  void run_until(Time end);
  void run_for(Time length) { run_until(now_ + length); }

  Time now() const { return now_; }
  TurnScheduler& controller() { return controller_; }
  // The work of the hardware, in percent of the time.
  double percent(TenantId id, Time from, Time to) const;
  double percent(TenantId id) const { return percent(id, Time{0}, now_); }
  // The smallest and largest percentage in any window of this length after `from`.
  std::pair<double, double> extremes(TenantId id, Time window, Time from = 1s) const;
  // The times from arrival to end of the requests that arrived after `from`, sorted.
  std::vector<Time> latencies(TenantId id, Time from = 1s) const;
  Time longest_wait(TenantId id) const;  // with work and without the GPU
  std::uint64_t switches() const { return switches_; }
  std::uint64_t ticks() const { return ticks_; }  // that the turn scheduler requested

  // Called after every event.
  std::function<void()> look = [] {};

 private:
  struct Tenant {
    TestProgram program;
    GateState gate;
    bool reported = false;      // active
    std::deque<Time> launched;  // what remains of each kernel
    Time backlog{0};
    std::deque<std::pair<Time, Time>> requests;    // arrival, work that remains
    std::vector<std::pair<Time, Time>> latencies;  // arrival, how long
    Time one_ready{0};
    Time busy{0};
    std::vector<Time> samples;  // of `busy`
    Time first_sample{0};
    Time waiting_since = Time::max();
    Time longest_wait{0};
    std::uint32_t drain_told = 0;
  };

  void at(Time when, std::function<void()> what);
  void apply_gate_changes();  // what the turn scheduler decides
  void request(TenantId id);
  void next_request(TenantId id, const TestProgram& program);
  void pump(TenantId id);
  void launch(Tenant& tenant);
  bool may_launch(const Tenant& tenant) const;
  void tell_state(TenantId id, Tenant& tenant);
  void report(std::function<void(Time)> what);
  void run_gpu();
  void gpu_progress();
  bool next_tenant();
  void finish_kernel(TenantId id, Tenant& tenant);
  void sample();
  Time work_of(const Tenant& tenant) const;

  struct Event {
    Time when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : number > other.number;
    }
  };

  TurnScheduler controller_;
  std::map<TenantId, Tenant> tenants_;
  std::priority_queue<Event> events_;
  std::uint64_t events_made_ = 0;
  Time now_{0};
  Time next_sample_ = Time{0};
  // The hardware.
  std::optional<TenantId> running_;
  Time ready_at_{0};  // after a switch
  Time progress_at_{0};
  Time slice_end_{0};
  std::uint64_t gpu_event_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t ticks_ = 0;
  Time tick_at_ = Time::max();
  std::minstd_rand random_{1};
};

}  // namespace gantry::policy
