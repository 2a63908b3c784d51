// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/gpu_schedule_internal.hpp"

namespace gantry::sim {
namespace {

// Other processes also write the region, so a value that is used as an index is bounded here.
uint32_t slots_in(const TimeRegion& region) {
  return region.slot_count < kMaxProcessSlots ? region.slot_count : kMaxProcessSlots;
}

bool belongs_to(const ProcessSlot& slot, uint32_t timeline) {
  return slot.used != 0 && slot.timeline == timeline;
}

void note(ProcessSlot& slot, uint64_t wall, bool runs) {
  if (slot.mark_count != 0 && (slot.mark[(slot.mark_count - 1) % kMarks].runs != 0) == runs) return;
  slot.mark[slot.mark_count % kMarks] = {wall, slot.own, runs ? 1U : 0U, 0};
  ++slot.mark_count;
}

void sample(ProcessSlot& slot, uint64_t wall) {
  if (slot.sample_count != 0 &&
      wall < slot.sample[(slot.sample_count - 1) % kSamples].wall + kSampleNs)
    return;
  slot.sample[slot.sample_count % kSamples] = {wall, slot.busy};
  ++slot.sample_count;
}

struct WaitQueue {
  uint32_t count;
  uint32_t next;  // after the current one, in turn
  bool current;   // the current process is one of them
};

WaitQueue waiting_in(const TimeRegion& region, uint32_t timeline_number) {
  const uint32_t current = region.timeline[timeline_number].current;
  const uint32_t count = slots_in(region);
  WaitQueue found = {0, kMaxProcessSlots, false};
  uint32_t first = kMaxProcessSlots;
  for (uint32_t i = 0; i < count; ++i) {
    const ProcessSlot& slot = region.slot[i];
    if (!belongs_to(slot, timeline_number) || !has_work(slot)) continue;
    ++found.count;
    if (i == current) found.current = true;
    if (first == kMaxProcessSlots) first = i;
    if (i > current && found.next == kMaxProcessSlots) found.next = i;
  }
  if (found.next == kMaxProcessSlots) found.next = first;
  return found;
}

uint64_t earlier(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

// Advances the own time of every process over a span in which `runner` has the GPU
// (kMaxProcessSlots: no process has it).
void pass(TimeRegion& region, uint32_t timeline_number, uint32_t runner, uint64_t span) {
  Timeline& timeline = region.timeline[timeline_number];
  const uint32_t count = slots_in(region);
  for (uint32_t i = 0; i < count; ++i) {
    ProcessSlot& slot = region.slot[i];
    if (!belongs_to(slot, timeline_number)) continue;
    const bool runs = i == runner || !has_work(slot);
    note(slot, timeline.wall, runs);
    sample(slot, timeline.wall);
    if (!runs) continue;
    if (has_work(slot)) slot.busy += span;
    slot.own += span;
  }
  timeline.wall += span;
}

// A process alone on the GPU keeps running. Its slices still end, so that a new process waits for
// the rest of one.
void run_alone(TimeRegion& region, uint32_t number, uint32_t slot, uint64_t wall) {
  Timeline& timeline = region.timeline[number];
  timeline.current = slot;
  timeline.switching = 0;
  const ProcessSlot& only = region.slot[slot];
  pass(region, number, slot, earlier(wall - timeline.wall, only.until - only.own));
  if (timeline.wall >= timeline.slice_end)
    timeline.slice_end = timeline.wall + kSliceNs - (timeline.wall - timeline.slice_end) % kSliceNs;
}

void take_turns(TimeRegion& region, uint32_t number, const WaitQueue& waiting, uint64_t wall) {
  Timeline& timeline = region.timeline[number];
  if (timeline.switching == 0 && (!waiting.current || timeline.wall >= timeline.slice_end)) {
    timeline.current = waiting.next;
    timeline.switching = 1;
    timeline.free_at = timeline.wall + kSwitchNs;
  }
  if (timeline.switching != 0) {
    if (timeline.wall < timeline.free_at) {
      pass(region, number, kMaxProcessSlots, earlier(wall, timeline.free_at) - timeline.wall);
      return;
    }
    timeline.switching = 0;
    timeline.slice_end = timeline.wall + kSliceNs;
  }
  const ProcessSlot& runner = region.slot[timeline.current % kMaxProcessSlots];
  const uint64_t left = has_work(runner) ? runner.until - runner.own : 0;
  const uint64_t end = earlier(wall, timeline.slice_end);
  pass(region, number, timeline.current,
       end > timeline.wall ? earlier(end - timeline.wall, left) : 0);
}

}  // namespace

void advance(TimeRegion& region, uint32_t timeline_number, uint64_t wall) {
  if (timeline_number >= kMaxTimelines) return;
  Timeline& timeline = region.timeline[timeline_number];
  if (timeline.wall == 0) timeline.wall = wall;
  // Each round ends a slice, a switch or the work of a process; the bound protects against a
  // damaged region.
  for (int rounds = 0; timeline.wall < wall && rounds < 500000; ++rounds) {
    const WaitQueue waiting = waiting_in(region, timeline_number);
    if (waiting.count == 0) {
      pass(region, timeline_number, kMaxProcessSlots, wall - timeline.wall);
    } else if (waiting.count == 1) {
      run_alone(region, timeline_number, waiting.next, wall);
    } else {
      take_turns(region, timeline_number, waiting, wall);
    }
  }
  if (timeline.wall < wall) timeline.wall = wall;
}

void claim_slot(TimeRegion& region, uint32_t slot_number, uint32_t timeline, int32_t pid,
                uint64_t space) {
  ProcessSlot& slot = region.slot[slot_number];
  const uint64_t wall = region.timeline[timeline].wall;
  slot.used = 0;
  slot.timeline = timeline;
  slot.pid = pid;
  slot.space = space;
  slot.own = wall;
  slot.until = 0;
  slot.busy = 0;
  slot.mark_count = 0;
  slot.sample_count = 0;
  note(slot, wall, true);
  sample(slot, wall);
  if (region.slot_count <= slot_number) region.slot_count = slot_number + 1;
  slot.used = 1;
}

uint64_t time_until(const TimeRegion& region, uint32_t slot_number, uint64_t own) {
  const ProcessSlot& slot = region.slot[slot_number];
  if (slot.own >= own) return 0;
  const uint64_t left = own - slot.own;
  const Timeline& timeline = region.timeline[slot.timeline % kMaxTimelines];
  if (!has_work(slot)) return left;
  if (timeline.switching != 0) {
    const uint64_t gap = timeline.free_at > timeline.wall ? timeline.free_at - timeline.wall : 0;
    return timeline.current == slot_number ? gap + left : gap + kSwitchNs + left;
  }
  const ProcessSlot& runner = region.slot[timeline.current % kMaxProcessSlots];
  if (timeline.current == slot_number || !has_work(runner)) return left;
  const uint64_t slice =
      timeline.slice_end > timeline.wall ? timeline.slice_end - timeline.wall : 0;
  return earlier(slice, runner.until - runner.own) + kSwitchNs + left;
}

uint64_t wall_time(const TimeRegion& region, uint32_t slot_number, uint64_t own) {
  const ProcessSlot& slot = region.slot[slot_number];
  if (slot.own <= own)
    return region.timeline[slot.timeline % kMaxTimelines].wall + (own - slot.own);
  const uint64_t kept = slot.mark_count < kMarks ? slot.mark_count : kMarks;
  for (uint64_t back = 1; back <= kept; ++back) {
    const TimeMark& mark = slot.mark[(slot.mark_count - back) % kMarks];
    if (mark.runs != 0 && (mark.own < own || back == kept))
      return own > mark.own ? mark.wall + (own - mark.own) : mark.wall - (mark.own - own);
  }
  return own;
}

uint64_t busy_since(const TimeRegion& region, uint32_t slot_number, uint64_t& from) {
  const ProcessSlot& slot = region.slot[slot_number];
  const uint64_t kept = slot.sample_count < kSamples ? slot.sample_count : kSamples;
  TimeSample start = {region.timeline[slot.timeline % kMaxTimelines].wall, slot.busy};
  for (uint64_t back = 1; back <= kept; ++back) {
    const TimeSample& one = slot.sample[(slot.sample_count - back) % kSamples];
    if (one.wall > start.wall || one.busy > start.busy) break;
    start = one;
    if (one.wall <= from) break;
  }
  from = start.wall;
  return slot.busy - start.busy;
}

}  // namespace gantry::sim
