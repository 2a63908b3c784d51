// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/gate.hpp"

#include "sharing/fence/completion_thread.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/graph_costs.hpp"
#include "sharing/fence/outstanding_work.hpp"
#include "sharing/fence/pacing.hpp"
#include "sharing/fence/streams.hpp"

namespace gantry::fence {
namespace {

// With one launch in flight, the GPU is idle between two launches. Short launches may overlap as
// long as another share would not wait longer for them than this.
constexpr uint64_t kShortWorkNs = 100 * kMicrosecond;
// The next launch is made this much before the end of a long one: between two launches that wait
// for each other, an H200 is idle for 8.7 us.
constexpr uint64_t kAboutToEndNs = 12 * kMicrosecond;
// Work that does not end may be waiting for the very launch that waits for it.
constexpr uint64_t kWorkPatienceNs = 100 * kMillisecond;
// The completion thread looks more often; this is for a process that could not start it.
constexpr uint64_t kLookAtBeatNs = 10 * kMillisecond;
// A launch that must be refused waits this long for a daemon that comes back.
constexpr uint64_t kDaemonPatienceNs = 50 * kMillisecond;
// The GPU may always have this much work, however long it takes: the work of the current mark and
// of two more.
constexpr uint32_t kLeastMarks = 3;

constexpr uint64_t kMostUnmarked = 2;

uint32_t state_of(uint32_t gate) {
  return time_limited() ? gate & FENCE_GATE_MASK : uint32_t{FENCE_OPEN};
}

bool stays_refused(uint32_t gpu) {
  const uint64_t until = monotonic_ns() + kDaemonPatienceNs;
  while (launches_are_refused(gpu)) {
    if (monotonic_ns() > until) return true;
    sleep_for_ns(kMillisecond);
    pace(gpu);
  }
  return false;
}

// While another share that is below its part sends requests, the gate is shut for the length of
// each request. Waking up afterwards would cost tens of microseconds of GPU time per request, so
// one thread polls for a while before it sleeps.
void look_at_gate(uint32_t gpu, uint32_t gate) {
  constexpr uint64_t kShortAbsenceNs = 2 * kMillisecond;
  GpuTurn& turn = turn_of(gpu);
  if (turn.alone.exchange(0, std::memory_order_relaxed) == 0) return;
  const uint64_t until = monotonic_ns() + kShortAbsenceNs;
  while (gate_of(gpu) == gate && monotonic_ns() < until) cpu_relax();
}

void wait_while_shut(uint32_t gpu, uint32_t gate) {
  start_waiting(gpu);
  look_at_gate(gpu, gate);
  while (gate_of(gpu) == gate && state_of(gate) == FENCE_SHUT && !launches_are_refused(gpu)) {
    futex_wait(&limits().gpu[gpu].gate, gate, kAcrossProcesses, kLookAtBeatNs);
    pace(gpu);
  }
  stop_waiting(gpu);
}

uint64_t patience(uint64_t expected_ns) {
  return monotonic_ns() + kWorkPatienceNs + 4 * expected_ns;
}

// True if another launch of this cost may join the work on the GPU: there is none, almost none, or
// one launch that is about to end.
bool may_join(const OutstandingWork& left, uint64_t cost_ns) {
  if (left.launches == 0 || left.expected_ns + cost_ns <= kShortWorkNs) return true;
  return left.launches == 1 && left.expected_ns <= kAboutToEndNs;
}

uint64_t cost_now(StreamWork& work) {
  const Guard guard(work.lock);
  return cost_of(work);
}

void wait_for_ours(StreamWork& work, uint32_t gate) {
  const uint64_t cost = cost_now(work);
  CompletionPoller lookout(PollUrgency::Urgent);
  OutstandingWork left = outstanding(work.gpu(), UnmarkedLaunches::Mark);
  const uint64_t until = patience(left.expected_ns);
  while (!may_join(left, cost)) {
    if (gate_of(work.gpu()) != gate || monotonic_ns() > until) return;
    lookout.wait(left.expected_ns);
    left = outstanding(work.gpu(), UnmarkedLaunches::Mark);
  }
}

void tell_now(Launch& launch) {
  if (launch.tell) report_active(launch.work->gpu());
  launch.tell = false;
}

LaunchEntry wait_at_gate(Launch& launch) {
  StreamWork& work = *launch.work;
  const uint32_t gpu = work.gpu();
  if (stream_is_capturing(launch.stream)) return LaunchEntry::NotCounted;
  for (;;) {
    pace(gpu);
    if (stays_refused(gpu)) return LaunchEntry::Refused;
    const uint32_t gate = gate_of(gpu);
    const uint32_t state = state_of(gate);
    if (state == FENCE_SHUT) {
      tell_now(launch);
      wait_while_shut(gpu, gate);
      continue;
    }
    launch.tell = become_active(gpu) || launch.tell;
    launch.alone = state == FENCE_ONE;
    turn_of(gpu).alone.store(launch.alone ? 1 : 0, std::memory_order_relaxed);
    if (launch.alone) {
      tell_now(launch);
      wait_for_ours(work, gate);
    }
    work.begun.fetch_add(1, std::memory_order_seq_cst);
    const bool same = gate_of(gpu) == gate;
    if (same && turn_of(gpu).demand.load(std::memory_order_seq_cst) == Demand::Busy)
      return LaunchEntry::Counted;
    work.begun.fetch_sub(1, std::memory_order_seq_cst);
  }
}

// The work in the queue, over all streams.
uint64_t in_queue(const StreamWork& work, uint64_t now_ns) {
  const uint64_t marked = turn_of(work.gpu()).queued_ns.load(std::memory_order_relaxed);
  return marked - work.queued_ns + expected_ns(work, now_ns);
}

uint64_t most_in_queue(const StreamWork& work) {
  return __atomic_load_n(&limits().gpu[work.gpu()].queue_ns, __ATOMIC_RELAXED);
}

// True if there is more work than another tenant should have to wait for.
bool too_much(const StreamWork& work, uint64_t most, uint64_t now_ns) {
  if (most == 0 || work.count < kLeastMarks) return false;
  return launches_outstanding(work) > work.window || in_queue(work, now_ns) > most;
}

struct Room {
  bool enough;
  uint64_t expected_ns;  // until there is
};

// A wait ends when a quarter of the queue is free, which gives fewer and longer sleeps.
Room look_for_room(StreamWork& work) {
  const Guard guard(work.lock);
  const uint64_t now_ns = monotonic_ns();
  const uint64_t most = most_in_queue(work) / 4 * 3;
  look(work, now_ns);
  const uint64_t queued = in_queue(work, now_ns);
  return {!too_much(work, most, now_ns), queued > most ? queued - most : 0};
}

void wait_for_room(StreamWork& work) {
  const uint32_t gate = gate_of(work.gpu());
  GpuTurn& turn = turn_of(work.gpu());
  turn.pacing.fetch_add(1, std::memory_order_relaxed);
  CompletionPoller lookout(PollUrgency::None);
  Room room = look_for_room(work);
  const uint64_t until = patience(room.expected_ns);
  while (!room.enough && gate_of(work.gpu()) == gate && time_limited() && monotonic_ns() < until) {
    lookout.wait(room.expected_ns);
    room = look_for_room(work);
  }
  turn.pacing.fetch_sub(1, std::memory_order_relaxed);
}

// A default stream belongs to the current context. If that changed unnoticed, the launch was
// counted for the wrong stream, and a mark would go there too.
bool still_ours(const StreamWork& work, const ContextScope& in) {
  if (!in.ok()) return false;
  if (work.reach() == EventAccess::Anyone || in.was_current()) return true;
  context_changed();
  return false;
}

void count_graph(const Launch& launch) {
  StreamWork& work = *launch.work;
  const uint64_t cost = graph_cost(launch.what);
  const Guard guard(work.lock);
  work.graph = launch.what;
  work.graph_ns += cost;
  ++work.graphs;
}

// True if the queue is full.
bool mark_now(const Launch& launch) {
  StreamWork& work = *launch.work;
  const ContextScope in(work.context);
  if (!still_ours(work, in)) return false;
  const uint64_t now_ns = monotonic_ns();
  if (captures_open() && stream_is_capturing(work.stream)) {
    complete_through(work, work.done.load(std::memory_order_relaxed), now_ns);
    return false;
  }
  show_launches(work.gpu(), work.done.load(std::memory_order_relaxed) - work.marked);
  if (work.count >= kLeastMarks) look(work, now_ns);
  mark(work, now_ns);
  return too_much(work, most_in_queue(work), now_ns);
}

void settle_turn(uint32_t gpu) {
  if (turn_of(gpu).demand.load(std::memory_order_relaxed) == Demand::Idle) return;
  if (outstanding(gpu, UnmarkedLaunches::Mark).none()) report_if_idle(gpu, IdleHint::Waited);
}

void settle_all_turns() {
  for (uint32_t gpu = 0; gpu < host.gpu_count && gpu < FENCE_MAX_GPUS; ++gpu) settle_turn(gpu);
}

}  // namespace

// The count increases before the gate is read: if the gate is shut and all launches that began have
// ended, no other launch is in progress.
LaunchEntry gate_enter(Launch& launch) {
  StreamWork* work = stream_work(launch.stream);
  if (work == nullptr) return LaunchEntry::NotCounted;
  launch.work = work;
  work->begun.fetch_add(1, std::memory_order_seq_cst);
  const bool open = (gate_of(work->gpu()) & FENCE_GATE_MASK) == FENCE_OPEN;
  if (__builtin_expect(
          open && turn_of(work->gpu()).demand.load(std::memory_order_seq_cst) == Demand::Busy, 1))
    return LaunchEntry::Counted;
  work->begun.fetch_sub(1, std::memory_order_seq_cst);
  return wait_at_gate(launch);
}

void gate_exit(const Launch& launch) {
  StreamWork& work = *launch.work;
  if (__builtin_expect(launch.tell, 0)) report_active(work.gpu());
  const bool graph = launch.kind == LaunchKind::Graph;
  if (__builtin_expect(graph, 0)) count_graph(launch);
  const uint64_t done = work.done.fetch_add(1, std::memory_order_seq_cst) + 1;
  const uint64_t due = work.next_mark.load(std::memory_order_relaxed);
  if (__builtin_expect(done < due && !launch.alone && !graph, 1)) return;
  // Another thread may be doing it. Only a few launches pass without it, because that thread may
  // not be running.
  if (!work.lock.try_lock()) {
    if (done < due + kMostUnmarked && !launch.alone) return;
    work.lock.lock();
  }
  const bool full = mark_now(launch);
  work.lock.unlock();
  if (full) wait_for_room(work);
}

void gate_before_wait(CUstream stream, WaitScope& waited) {
  StreamWork* work = find_stream_work(stream);
  if (work != nullptr)
    waited.on[waited.count++] = {work, work->done.load(std::memory_order_seq_cst)};
}

void gate_before_wait(CUcontext context, WaitScope& waited) {
  if (context == nullptr && real().cuCtxGetCurrent(&context) != CUDA_SUCCESS) return;
  waited.everywhere = true;
  for_each_stream_work([&](StreamWork& work) {
    const uint64_t done = work.done.load(std::memory_order_seq_cst);
    if (work.completed.load(std::memory_order_relaxed) == done) return;
    if (waited.count < WaitScope::kMaxStreams && context_of(work) == context)
      waited.on[waited.count++] = {&work, done};
  });
}

void gate_after_wait(const WaitScope& waited) {
  bool done[FENCE_MAX_GPUS] = {};
  for (uint32_t i = 0; i < waited.count; ++i) {
    StreamWork& work = *waited.on[i].work;
    const Guard guard(work.lock);
    if (work.life.load(std::memory_order_relaxed) == StreamState::Free) continue;
    complete_through(work, waited.on[i].done, monotonic_ns());
    done[work.gpu()] = true;
  }
  for (uint32_t gpu = 0; gpu < host.gpu_count && gpu < FENCE_MAX_GPUS; ++gpu) {
    if (done[gpu] || waited.everywhere) settle_turn(gpu);
  }
}

void gate_after_event_sync() {
  settle_all_turns();
}

void gate_before_stream_destroy(CUstream stream) {
  before_stream_destroy(stream);
}

void gate_before_context_destroy(CUcontext context) {
  if (context == nullptr && real().cuCtxGetCurrent(&context) != CUDA_SUCCESS) return;
  before_context_destroy(context);
}

void gate_before_primary_release(CUdevice device) {
  unsigned int flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  if (real().cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0)
    return;
  if (real().cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return;
  before_context_destroy(context);
  real().cuDevicePrimaryCtxRelease_v2(device);
}

void gate_context_changed() {
  context_changed();
}

void gate_before_capture() {
  begin_capture();
}
void gate_after_capture_begin(bool really) {
  capture_started();
  if (!really) end_capture();
}
void gate_after_capture_end() {
  end_capture();
}

void reset_gate_after_fork() {
  reset_streams_after_fork();
  reset_graph_costs_after_fork();
  reset_turns_after_fork();
  reset_pacing_after_fork();
  reset_completion_threads_after_fork();
}

}  // namespace gantry::fence
