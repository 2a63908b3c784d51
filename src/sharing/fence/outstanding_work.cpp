// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/outstanding_work.hpp"

#include "sharing/fence/streams.hpp"

namespace gantry::fence {
namespace {

// Records a mark on another thread's stream.
bool can_mark(const StreamWork& work) {
  if (work.reach() == EventAccess::OwnThread) return false;
  return work.reach() == EventAccess::Anyone || !captures_open();
}

// Launches that no other thread can mark: judged by time, once all earlier work has ended. Work
// that still runs and later launches move the time.
void wait_out_tail(StreamWork& work, uint64_t now_ns) {
  const uint64_t done = work.done.load(std::memory_order_seq_cst);
  if (work.tail_until_ns == 0 || work.tail_through != done || work.count != 0) {
    work.tail_through = done;
    work.tail_until_ns = now_ns + expected_ns(work, now_ns);
  }
  if (work.count == 0 && now_ns >= work.tail_until_ns) complete_through(work, done, now_ns);
}

void mark_tail(StreamWork& work, uint64_t now_ns) {
  // The stream may already be destroyed: the driver must not be called with it.
  if (work.life.load(std::memory_order_relaxed) != StreamState::Alive)
    return wait_out_tail(work, now_ns);
  if (work.reach() == EventAccess::Anyone &&
      capturing(work)) {  // these launches were only recorded
    complete_through(work, work.done.load(std::memory_order_seq_cst), now_ns);
    return;
  }
  if (can_mark(work) && mark(work, now_ns)) {
    look(work, now_ns);
    return;
  }
  wait_out_tail(work, now_ns);
}

// Called with the work's lock held and its context current.
void examine(StreamWork& work, UnmarkedLaunches tails, OutstandingWork& sum) {
  const uint64_t now_ns = monotonic_ns();
  look(work, now_ns);
  const bool tail = work.done.load(std::memory_order_seq_cst) != work.marked;
  if (tail && tails == UnmarkedLaunches::Mark) mark_tail(work, now_ns);
  const uint64_t done = work.done.load(std::memory_order_seq_cst);
  sum.launches += done - work.completed.load(std::memory_order_relaxed);
  sum.expected_ns += expected_ns(work, now_ns);
}

}  // namespace

OutstandingWork outstanding(uint32_t gpu, UnmarkedLaunches tails) {
  OutstandingWork sum;
  for_each_stream_work(gpu, [&](StreamWork& work) {
    const uint64_t completed = work.completed.load(std::memory_order_seq_cst);
    const uint64_t done = work.done.load(std::memory_order_seq_cst);
    if (work.begun.load(std::memory_order_seq_cst) != done) sum.entering = true;
    const bool ended = work.life.load(std::memory_order_acquire) == StreamState::Ended;
    if (completed == done && !ended) return;
    bool release = false;
    {
      const Guard guard(work.lock);
      if (work.life.load(std::memory_order_relaxed) == StreamState::Free) return;
      const ContextScope in(work.context);
      if (in.ok())
        examine(work, tails, sum);
      else
        abandon(work);  // its context is gone
      release = ended && work.completed.load(std::memory_order_relaxed) ==
                             work.done.load(std::memory_order_relaxed);
    }
    if (release) release_ended(work);
  });
  return sum;
}

uint64_t launches_begun(uint32_t gpu) {
  uint64_t sum = 0;
  for_each_stream_work(
      gpu, [&sum](const StreamWork& work) { sum += work.begun.load(std::memory_order_relaxed); });
  return sum;
}

bool all_seen_to_end(uint32_t gpu) {
  bool all = true;
  for_each_stream_work(gpu, [&all](const StreamWork& work) {
    all = all && work.begun.load(std::memory_order_seq_cst) ==
                     work.completed.load(std::memory_order_seq_cst);
  });
  return all;
}

}  // namespace gantry::fence
