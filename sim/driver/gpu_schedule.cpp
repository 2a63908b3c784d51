// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/gpu_schedule_internal.hpp"

namespace gantry::sim {
namespace {

// Other processes write the region too: what is used as an index is bounded here.
uint32_t seats_in(const TimeRegion& region) {
  return region.seat_count < kSeats ? region.seat_count : kSeats;
}

bool sits_in(const Seat& seat, uint32_t lane) {
  return seat.used != 0 && seat.lane == lane;
}

void note(Seat& seat, uint64_t wall, bool runs) {
  if (seat.mark_count != 0 && (seat.mark[(seat.mark_count - 1) % kMarks].runs != 0) == runs) return;
  seat.mark[seat.mark_count % kMarks] = {wall, seat.own, runs ? 1U : 0U, 0};
  ++seat.mark_count;
}

void sample(Seat& seat, uint64_t wall) {
  if (seat.sample_count != 0 &&
      wall < seat.sample[(seat.sample_count - 1) % kSamples].wall + kSampleNs)
    return;
  seat.sample[seat.sample_count % kSamples] = {wall, seat.busy};
  ++seat.sample_count;
}

struct Waiting {
  uint32_t count;
  uint32_t next;  // after the current one, in turn
  bool current;   // the current one is among them
};

Waiting waiting_in(const TimeRegion& region, uint32_t lane_number) {
  const uint32_t current = region.lane[lane_number].current;
  const uint32_t count = seats_in(region);
  Waiting found = {0, kSeats, false};
  uint32_t first = kSeats;
  for (uint32_t i = 0; i < count; ++i) {
    const Seat& seat = region.seat[i];
    if (!sits_in(seat, lane_number) || !has_work(seat)) continue;
    ++found.count;
    if (i == current) found.current = true;
    if (first == kSeats) first = i;
    if (i > current && found.next == kSeats) found.next = i;
  }
  if (found.next == kSeats) found.next = first;
  return found;
}

uint64_t earlier(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

// Everybody's own time over a span in which `runner` has the GPU (kSeats: nobody has).
void pass(TimeRegion& region, uint32_t lane_number, uint32_t runner, uint64_t span) {
  Lane& lane = region.lane[lane_number];
  const uint32_t count = seats_in(region);
  for (uint32_t i = 0; i < count; ++i) {
    Seat& seat = region.seat[i];
    if (!sits_in(seat, lane_number)) continue;
    const bool runs = i == runner || !has_work(seat);
    note(seat, lane.wall, runs);
    sample(seat, lane.wall);
    if (!runs) continue;
    if (has_work(seat)) seat.busy += span;
    seat.own += span;
  }
  lane.wall += span;
}

// Alone on the GPU a process runs on; the slices go by unseen, so that who comes waits for the rest
// of one.
void run_alone(TimeRegion& region, uint32_t number, uint32_t seat, uint64_t wall) {
  Lane& lane = region.lane[number];
  lane.current = seat;
  lane.switching = 0;
  const Seat& only = region.seat[seat];
  pass(region, number, seat, earlier(wall - lane.wall, only.until - only.own));
  if (lane.wall >= lane.slice_end)
    lane.slice_end = lane.wall + kSliceNs - (lane.wall - lane.slice_end) % kSliceNs;
}

void take_turns(TimeRegion& region, uint32_t number, const Waiting& waiting, uint64_t wall) {
  Lane& lane = region.lane[number];
  if (lane.switching == 0 && (!waiting.current || lane.wall >= lane.slice_end)) {
    lane.current = waiting.next;
    lane.switching = 1;
    lane.free_at = lane.wall + kSwitchNs;
  }
  if (lane.switching != 0) {
    if (lane.wall < lane.free_at) {
      pass(region, number, kSeats, earlier(wall, lane.free_at) - lane.wall);
      return;
    }
    lane.switching = 0;
    lane.slice_end = lane.wall + kSliceNs;
  }
  const Seat& runner = region.seat[lane.current % kSeats];
  const uint64_t left = has_work(runner) ? runner.until - runner.own : 0;
  const uint64_t end = earlier(wall, lane.slice_end);
  pass(region, number, lane.current, end > lane.wall ? earlier(end - lane.wall, left) : 0);
}

}  // namespace

void advance(TimeRegion& region, uint32_t lane_number, uint64_t wall) {
  if (lane_number >= kLanes) return;
  Lane& lane = region.lane[lane_number];
  if (lane.wall == 0) lane.wall = wall;
  // Each round ends a slice, a switch or somebody's work; the bound is for a region gone wrong.
  for (int rounds = 0; lane.wall < wall && rounds < 500000; ++rounds) {
    const Waiting waiting = waiting_in(region, lane_number);
    if (waiting.count == 0) {
      pass(region, lane_number, kSeats, wall - lane.wall);
    } else if (waiting.count == 1) {
      run_alone(region, lane_number, waiting.next, wall);
    } else {
      take_turns(region, lane_number, waiting, wall);
    }
  }
  if (lane.wall < wall) lane.wall = wall;
}

void sit_down(TimeRegion& region, uint32_t seat_number, uint32_t lane, int32_t pid,
              uint64_t space) {
  Seat& seat = region.seat[seat_number];
  const uint64_t wall = region.lane[lane].wall;
  seat.used = 0;
  seat.lane = lane;
  seat.pid = pid;
  seat.space = space;
  seat.own = wall;
  seat.until = 0;
  seat.busy = 0;
  seat.mark_count = 0;
  seat.sample_count = 0;
  note(seat, wall, true);
  sample(seat, wall);
  if (region.seat_count <= seat_number) region.seat_count = seat_number + 1;
  seat.used = 1;
}

uint64_t time_until(const TimeRegion& region, uint32_t seat_number, uint64_t own) {
  const Seat& seat = region.seat[seat_number];
  if (seat.own >= own) return 0;
  const uint64_t left = own - seat.own;
  const Lane& lane = region.lane[seat.lane % kLanes];
  if (!has_work(seat)) return left;
  if (lane.switching != 0) {
    const uint64_t gap = lane.free_at > lane.wall ? lane.free_at - lane.wall : 0;
    return lane.current == seat_number ? gap + left : gap + kSwitchNs + left;
  }
  const Seat& runner = region.seat[lane.current % kSeats];
  if (lane.current == seat_number || !has_work(runner)) return left;
  const uint64_t slice = lane.slice_end > lane.wall ? lane.slice_end - lane.wall : 0;
  return earlier(slice, runner.until - runner.own) + kSwitchNs + left;
}

uint64_t wall_of(const TimeRegion& region, uint32_t seat_number, uint64_t own) {
  const Seat& seat = region.seat[seat_number];
  if (seat.own <= own) return region.lane[seat.lane % kLanes].wall + (own - seat.own);
  const uint64_t kept = seat.mark_count < kMarks ? seat.mark_count : kMarks;
  for (uint64_t back = 1; back <= kept; ++back) {
    const TimeMark& mark = seat.mark[(seat.mark_count - back) % kMarks];
    if (mark.runs != 0 && (mark.own < own || back == kept))
      return own > mark.own ? mark.wall + (own - mark.own) : mark.wall - (mark.own - own);
  }
  return own;
}

uint64_t busy_since(const TimeRegion& region, uint32_t seat_number, uint64_t& from) {
  const Seat& seat = region.seat[seat_number];
  const uint64_t kept = seat.sample_count < kSamples ? seat.sample_count : kSamples;
  TimeSample start = {region.lane[seat.lane % kLanes].wall, seat.busy};
  for (uint64_t back = 1; back <= kept; ++back) {
    const TimeSample& one = seat.sample[(seat.sample_count - back) % kSamples];
    if (one.wall > start.wall || one.busy > start.busy) break;
    start = one;
    if (one.wall <= from) break;
  }
  from = start.wall;
  return seat.busy - start.busy;
}

}  // namespace gantry::sim
