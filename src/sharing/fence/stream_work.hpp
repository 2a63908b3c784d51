// SPDX-License-Identifier: Apache-2.0
// What one stream has been given and how much of it has ended. The launching threads count; an
// untimed event every so many launches, a mark, tells how far the GPU is. (Timed events would say
// more, and cost eight times as much.)
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/costs.hpp"
#include "sharing/fence/lock.hpp"

#include <stdint.h>

#include <atomic>

namespace gantry::fence {

enum class StreamState : uint32_t {
  Free,
  Alive,
  Ended,  // the stream is destroyed, its work may go on
};

// Who can record an event on the stream.
enum class EventAccess : uint32_t {
  Anyone,
  NotInCapture,  // the legacy stream: touching it ends the captures of others
  OwnThread,     // a per-thread default stream has no name elsewhere
};

struct Mark {
  CUevent event;
  uint32_t gate;      // as it was when the mark was recorded
  bool first;         // since the gate is like that: the GPU has just changed hands
  uint64_t through;   // launches done when it was recorded
  uint64_t launches;  // that it covers, without graphs
  // Graphs among them: what they cost is learned by the last one.
  const void* graph;
  uint64_t graph_ns;
};

struct StreamWork {
  // Written at every launch, by those who launch here.
  alignas(64) std::atomic<uint64_t> begun;  // before the driver is called
  std::atomic<uint64_t> done;               // after
  std::atomic<uint64_t> next_mark;          // at how many launches done
  std::atomic<uint64_t> completed;          // of `done`; written under `lock`

  alignas(64) CUstream stream;
  CUcontext context;
  const void* thread;            // with EventAccess::OwnThread
  std::atomic<uint32_t> on_gpu;  // these two are read without the lock, too
  std::atomic<EventAccess> reached_by;
  std::atomic<StreamState> life;
  StreamWork* next;  // in its bucket, or among the free

  // Under `lock`.
  alignas(64) Lock lock;
  uint32_t first, count;  // of marks
  uint64_t marked;        // launches that a mark covers
  // When the GPU began with what the oldest mark covers: between these. And when that had not been
  // reached yet for certain.
  uint64_t earliest_ns, latest_ns;
  uint64_t unreached_ns;
  uint64_t last_mark_ns;
  uint32_t last_gate;      // of the last mark
  uint64_t tail_until_ns;  // when launches that nobody can mark are believed to have ended
  uint64_t queued_ns;      // our part of GpuTurn::queued_ns
  uint64_t window;         // launches that may be outstanding, for what was learned so far
  Cost cost;
  const void* graph;  // launched since the last mark
  uint64_t graph_ns;
  uint64_t graphs;
  static constexpr uint32_t kMarks = 64;
  Mark marks[kMarks];

  uint32_t gpu() const { return on_gpu.load(std::memory_order_relaxed); }
  EventAccess reach() const { return reached_by.load(std::memory_order_relaxed); }
};

// How many launches nothing is learned from yet: a wrong idea of their cost must not become seconds
// of work. With each that ends one more is allowed, so the number doubles with every turnover.
inline constexpr uint64_t kFirstWindow = 3;
inline constexpr uint64_t kKnownCostWindow = 64;  // of a stream when other streams' costs are known

// All these with the work's lock held, and its context current.

// Looks which marks have been reached, and learns from it. Not while a capture begins.
void look(StreamWork& work, uint64_t now_ns);
// Puts a mark behind what is launched. False: not possible now.
bool mark(StreamWork& work, uint64_t now_ns);
// Everything up to there has ended; somebody has waited for it.
void complete_through(StreamWork& work, uint64_t done, uint64_t now_ns);
// The context is going: its events go with it, its work is over.
void abandon(StreamWork& work);
// Ended and empty: can be used again.
void recycle(StreamWork& work);

uint64_t cost_of(const StreamWork& work);
// Launches on the GPU, as far as is known.
uint64_t launches_outstanding(const StreamWork& work);
// Expected time of what is outstanding.
uint64_t expected_ns(const StreamWork& work, uint64_t now_ns);
// Whether launches of this stream are recorded into a graph now instead of being run.
bool capturing(const StreamWork& work);
bool stream_is_capturing(CUstream stream);
// Some thread is just beginning a capture (streams.cpp): then events are left alone.
bool capture_is_beginning();

}  // namespace gantry::fence
