// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/gpu_turn.hpp"

#include "sharing/fence/completion_thread.hpp"
#include "sharing/fence/costs.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/outstanding_work.hpp"

namespace gantry::fence {
namespace {

// Shorter pauses are not worth a report, which costs two messages and two changes of the gates.
constexpr uint64_t kShortPauseNs = 200 * kMicrosecond;
constexpr uint64_t kLongPauseNs = 2 * kMillisecond;
// The wait is this much longer for a program that usually comes back at once.
constexpr uint64_t kLongestDoubtNs = 5 * kMillisecond;

constinit GpuTurn turns[FENCE_MAX_GPUS]{};

bool has_row(uint32_t gpu) {
  return attached() && gpu < host.gpu_count;
}

void set(uint32_t& field, uint32_t value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}
void set(uint64_t& field, uint64_t value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}

void learn_gap(GpuTurn& turn) {
  if (turn.quiet_since_ns == 0) return;
  uint64_t gap = monotonic_ns() - turn.quiet_since_ns;
  if (gap > kLongPauseNs) gap = kLongPauseNs;  // one long pause must not become the usual pause
  turn.gap_ns = turn.gap_known ? (turn.gap_ns * 3 + gap) / 4 : gap;
  turn.gap_known = true;
  turn.quiet_since_ns = 0;
}

// Called with the turn's lock held. True if the daemon believes that this process is idle.
bool wake_up(GpuTurn& turn, uint32_t gpu) {
  const Demand before = turn.demand.load(std::memory_order_relaxed);
  if (before == Demand::Busy) return false;
  learn_gap(turn);
  turn.demand.store(Demand::Busy, std::memory_order_seq_cst);
  if (before == Demand::Quiet) return false;
  if (has_row(gpu)) set(own_row(gpu).busy, 1);
  return true;
}

bool pause_is_long(const GpuTurn& turn, IdleHint hint, uint64_t now_ns) {
  if (hint == IdleHint::Waited) return !turn.gap_known || turn.gap_ns >= kShortPauseNs;
  const uint64_t doubt = turn.gap_ns < kShortPauseNs / 2     ? kShortPauseNs
                         : turn.gap_ns > kLongestDoubtNs / 2 ? kLongestDoubtNs
                                                             : 2 * turn.gap_ns;
  return now_ns - turn.quiet_since_ns >= doubt;
}

void drained(GpuTurn& turn, uint32_t gpu, uint32_t gate) {
  const uint32_t number = gate >> FENCE_TURN_SHIFT;
  if (turn.drained_at == static_cast<uint64_t>(number) + 1) return;
  turn.drained_at = static_cast<uint64_t>(number) + 1;
  if (has_row(gpu)) {
    FenceUsageRow& row = own_row(gpu);
    set(row.drained_ns, monotonic_ns());
    set(row.drained, number);
    set(row.cost_ns, turn.cost_ns.load(std::memory_order_relaxed));
  }
  report(FENCE_DRAINED, gpu, number, 0);
}

}  // namespace

GpuTurn& turn_of(uint32_t gpu) {
  return turns[gpu];
}

bool become_active(uint32_t gpu) {
  GpuTurn& turn = turns[gpu];
  if (turn.demand.load(std::memory_order_relaxed) == Demand::Busy) return false;
  bool tell = false;
  {
    const Guard guard(turn.lock);
    tell = wake_up(turn, gpu);
  }
  wake_completion_thread(gpu);
  return tell;
}

void report_active(uint32_t gpu) {
  report(FENCE_ACTIVE, gpu, gate_of(gpu) >> FENCE_TURN_SHIFT, 0);
}

// Tells the daemon if it believed this process to be idle; otherwise it already knows that this
// process wants the GPU.
void start_waiting(uint32_t gpu) {
  GpuTurn& turn = turns[gpu];
  {
    const Guard guard(turn.lock);
    set(turn.waiting, turn.waiting + 1);
    if (has_row(gpu)) set(own_row(gpu).waiting, turn.waiting);
    if (wake_up(turn, gpu)) report_active(gpu);
  }
  wake_completion_thread(gpu);
}

void stop_waiting(uint32_t gpu) {
  GpuTurn& turn = turns[gpu];
  const Guard guard(turn.lock);
  set(turn.waiting, turn.waiting - 1);
  if (has_row(gpu)) set(own_row(gpu).waiting, turn.waiting);
}

// Sets the state first and checks again afterwards: a launch that began meanwhile either sees that
// it must report itself, or is seen here.
void report_if_idle(uint32_t gpu, IdleHint hint) {
  GpuTurn& turn = turns[gpu];
  const uint32_t gate = __atomic_load_n(&limits().gpu[gpu].gate, __ATOMIC_RELAXED);
  const Guard guard(turn.lock);
  const Demand before = turn.demand.load(std::memory_order_relaxed);
  if (before == Demand::Idle || turn.waiting != 0) return;
  const uint64_t now_ns = monotonic_ns();
  if (before == Demand::Busy || turn.quiet_since_ns == 0) turn.quiet_since_ns = now_ns;
  const Demand next = pause_is_long(turn, hint, now_ns) ? Demand::Idle : Demand::Quiet;
  turn.demand.store(next, std::memory_order_seq_cst);
  if (!all_seen_to_end(gpu)) {
    turn.quiet_since_ns = 0;
    turn.demand.store(Demand::Busy, std::memory_order_seq_cst);
    return;
  }
  if (is_shut(gate)) drained(turn, gpu, gate);
  if (next != Demand::Idle) return;
  if (has_row(gpu)) {
    set(own_row(gpu).drained_ns, now_ns);
    set(own_row(gpu).busy, 0);
  }
  report(FENCE_IDLE, gpu, gate >> FENCE_TURN_SHIFT, 0);
}

void report_drained(uint32_t gpu, uint32_t gate) {
  GpuTurn& turn = turns[gpu];
  const Guard guard(turn.lock);
  drained(turn, gpu, gate);
}

bool uses_gpu(uint32_t gpu, uint32_t gate) {
  GpuTurn& turn = turns[gpu];
  const Guard guard(turn.lock);
  if (turn.demand.load(std::memory_order_relaxed) == Demand::Idle) return false;
  return !is_shut(gate) || turn.drained_at != static_cast<uint64_t>(gate >> FENCE_TURN_SHIFT) + 1;
}

void show_launches(uint32_t gpu, uint64_t more) {
  GpuTurn& turn = turns[gpu];
  const uint64_t all = turn.launches.fetch_add(more, std::memory_order_relaxed) + more;
  if (!has_row(gpu)) return;
  set(own_row(gpu).launches, all);
  set(own_row(gpu).cost_ns, turn.cost_ns.load(std::memory_order_relaxed));
}

void show_demand() {
  for (uint32_t gpu = 0; gpu < host.gpu_count && gpu < FENCE_MAX_GPUS; ++gpu) {
    const bool idle = turns[gpu].demand.load(std::memory_order_seq_cst) == Demand::Idle;
    set(own_row(gpu).busy, idle ? 0 : 1);
    set(own_row(gpu).waiting, __atomic_load_n(&turns[gpu].waiting, __ATOMIC_RELAXED));
  }
}

void reset_turns_after_fork() {
  for (GpuTurn& turn : turns) {
    turn.demand.store(Demand::Idle, std::memory_order_relaxed);
    turn.queued_ns.store(0, std::memory_order_relaxed);
    turn.cost_ns.store(0, std::memory_order_relaxed);
    turn.launches.store(0, std::memory_order_relaxed);
    turn.pacing.store(0, std::memory_order_relaxed);
    turn.lock.reset();
    turn.waiting = 0;
    turn.quiet_since_ns = turn.gap_ns = turn.drained_at = 0;
    turn.gap_known = false;
    turn.follower.store(0, std::memory_order_relaxed);
    turn.asleep.store(0, std::memory_order_relaxed);
    turn.wake_futex.store(0, std::memory_order_relaxed);
  }
}

}  // namespace gantry::fence
