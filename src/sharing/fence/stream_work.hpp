// SPDX-License-Identifier: Apache-2.0
// The work of one stream, and how much of it has ended. The launching threads count launches. After
// every so many launches an untimed event, a mark, is recorded; it shows the GPU's progress. (Timed
// events would tell more but cost eight times as much.)
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
  Ended,  // the stream is destroyed; its work may still run
};

// Which thread can record an event on the stream.
enum class EventAccess : uint32_t {
  Anyone,
  NotInCapture,  // the legacy stream: using it ends other streams' captures
  OwnThread,     // a per-thread default stream has no handle in other threads
};

struct Mark {
  CUevent event;
  uint32_t gate;      // as it was when the mark was recorded
  bool first;         // since the gate is in this state: another share has just had the GPU
  uint64_t through;   // number of launches when it was recorded
  uint64_t launches;  // that it covers, without graphs
  // Graphs among them: the last one is used to learn their cost.
  const void* graph;
  uint64_t graph_ns;
};

struct StreamWork {
  // Written at every launch by the launching threads.
  alignas(64) std::atomic<uint64_t> begun;  // before the driver's call
  std::atomic<uint64_t> done;               // after
  std::atomic<uint64_t> next_mark;          // at this number of launches
  std::atomic<uint64_t> completed;          // of `done`; written under `lock`

  alignas(64) CUstream stream;
  CUcontext context;
  const void* thread;            // with EventAccess::OwnThread
  std::atomic<uint32_t> on_gpu;  // these two are also read without the lock
  std::atomic<EventAccess> reached_by;
  std::atomic<StreamState> life;
  StreamWork* next;  // in its bucket, or among the free

  // `lock` protects the following.
  alignas(64) Lock lock;
  uint32_t first, count;  // of marks
  uint64_t marked;        // launches that a mark covers
  // The GPU began the work of the oldest mark between these two times. At the third time it had
  // certainly not reached the mark yet.
  uint64_t earliest_ns, latest_ns;
  uint64_t unreached_ns;
  uint64_t last_mark_ns;
  uint32_t last_gate;      // of the last mark
  uint64_t tail_until_ns;  // when launches that cannot be marked are believed to have ended
  uint64_t tail_through;   // the launches that this time is for, as a value of `done`
  uint64_t queued_ns;      // this stream's part of GpuTurn::queued_ns
  uint64_t window;         // launches that may be outstanding, by the costs learned so far
  Cost cost;
  const void* graph;  // launched since the last mark
  uint64_t graph_ns;
  uint64_t graphs;
  static constexpr uint32_t kMarks = 64;
  Mark marks[kMarks];

  uint32_t gpu() const { return on_gpu.load(std::memory_order_relaxed); }
  EventAccess reach() const { return reached_by.load(std::memory_order_relaxed); }
};

// How many launches may be outstanding before a cost is learned: a wrong estimate must not become
// seconds of work. Each launch that ends allows one more, so the number doubles with every
// turnover.
inline constexpr uint64_t kFirstWindow = 3;
inline constexpr uint64_t kKnownCostWindow = 64;  // if other streams' costs are known

// Call the following with the work's lock held and its context current.

// Checks which marks have been reached, and learns from them. Do not call it while a capture
// begins.
void look(StreamWork& work, uint64_t now_ns);
// Records a mark after the launched work. False if that is not possible now.
bool mark(StreamWork& work, uint64_t now_ns);
// Everything up to there has ended; a thread has waited for it.
void complete_through(StreamWork& work, uint64_t done, uint64_t now_ns);
// The context is being destroyed, together with its events; its work has ended.
void abandon(StreamWork& work);
// Ended and empty: the entry can be reused.
void recycle(StreamWork& work);

uint64_t cost_of(const StreamWork& work);
// The number of launches on the GPU, as far as is known.
uint64_t launches_outstanding(const StreamWork& work);
// The expected time of the outstanding work.
uint64_t expected_ns(const StreamWork& work, uint64_t now_ns);
// True if launches of this stream are now recorded into a graph instead of being run.
bool capturing(const StreamWork& work);
bool stream_is_capturing(CUstream stream);
// True while a thread begins a capture (streams.cpp): no events may be used then.
bool capture_is_beginning();

}  // namespace gantry::fence
