// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/outstanding.hpp"

#include "sharing/fence/streams.hpp"

namespace gantry::fence {
namespace {

// A mark on somebody else's stream.
bool can_mark(const Work& work) {
  if (work.reach() == Reach::OwnThread) return false;
  return work.reach() == Reach::Anyone || !captures_open();
}

// Launches that nobody else can mark: by the clock, once all before them has ended.
void wait_out_tail(Work& work, uint64_t now_ns) {
  const uint64_t done = work.done.load(std::memory_order_seq_cst);
  if (work.tail_until_ns == 0) work.tail_until_ns = now_ns + expected_ns(work, now_ns);
  if (work.count == 0 && now_ns >= work.tail_until_ns) ended_upto(work, done, now_ns);
}

void mark_tail(Work& work, uint64_t now_ns) {
  // The stream may be destroyed already: the driver must not be asked about it any more.
  if (work.life.load(std::memory_order_relaxed) != Life::Alive) return wait_out_tail(work, now_ns);
  if (work.reach() == Reach::Anyone && capturing(work)) {  // these launches were only recorded
    ended_upto(work, work.done.load(std::memory_order_seq_cst), now_ns);
    return;
  }
  if (can_mark(work) && mark(work, now_ns)) {
    look(work, now_ns);
    return;
  }
  wait_out_tail(work, now_ns);
}

// With the work's lock and context.
void examine(Work& work, Tails tails, Outstanding& sum) {
  const uint64_t now_ns = monotonic_ns();
  look(work, now_ns);
  const bool tail = work.done.load(std::memory_order_seq_cst) != work.marked;
  if (tail && tails == Tails::Mark) mark_tail(work, now_ns);
  const uint64_t done = work.done.load(std::memory_order_seq_cst);
  sum.launches += done - work.completed.load(std::memory_order_relaxed);
  sum.expected_ns += expected_ns(work, now_ns);
}

}  // namespace

Outstanding outstanding(uint32_t gpu, Tails tails) {
  Outstanding sum;
  each_work(gpu, [&](Work& work) {
    const uint64_t completed = work.completed.load(std::memory_order_seq_cst);
    const uint64_t done = work.done.load(std::memory_order_seq_cst);
    if (work.begun.load(std::memory_order_seq_cst) != done) sum.entering = true;
    const bool ended = work.life.load(std::memory_order_acquire) == Life::Ended;
    if (completed == done && !ended) return;
    bool release = false;
    {
      const Guard guard(work.lock);
      if (work.life.load(std::memory_order_relaxed) == Life::Free) return;
      const InContext in(work.context);
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
  each_work(gpu, [&sum](const Work& work) { sum += work.begun.load(std::memory_order_relaxed); });
  return sum;
}

bool all_seen_to_end(uint32_t gpu) {
  bool all = true;
  each_work(gpu, [&all](const Work& work) {
    all = all && work.begun.load(std::memory_order_seq_cst) ==
                     work.completed.load(std::memory_order_seq_cst);
  });
  return all;
}

}  // namespace gantry::fence
