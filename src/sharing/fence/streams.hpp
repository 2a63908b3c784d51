// SPDX-License-Identifier: Apache-2.0
// The streams that have been given work, by handle. Each thread remembers where it launched last,
// so that a launch looks nothing up.
#pragma once

#include "sharing/fence/stream_work.hpp"

namespace gantry::fence {

// The work of that stream (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle), made where there is
// none. nullptr: not one to be counted (a stream that is capturing, no context, a GPU that is not
// of the share).
StreamWork* stream_work(CUstream stream);
// Only if there is one already.
StreamWork* find_stream_work(CUstream stream);
// This thread may have another current context now.
void context_changed();
// The stream is about to be destroyed.
void before_stream_destroy(CUstream stream);
// A destroyed stream's work has ended: there is room for another.
void release_ended(StreamWork& work);
// The context is about to be destroyed.
void before_context_destroy(CUcontext context);
// A capture is about to begin (counted), is under way, or has ended. While it begins no event of
// ours is recorded or asked for anywhere: on an H200 that ends it. While it is under way the legacy
// stream is left alone.
void begin_capture();
void capture_started();
void end_capture();
bool captures_open();
// The stream may become part of a capture: whoever looks after it waits until this ends.
class CaptureJoinGuard {
 public:
  explicit CaptureJoinGuard(CUstream stream);
  ~CaptureJoinGuard();
  CaptureJoinGuard(const CaptureJoinGuard&) = delete;
  CaptureJoinGuard& operator=(const CaptureJoinGuard&) = delete;

 private:
  StreamWork* work_;
};
void reset_streams_after_fork();

// Calls visit(Work&) for every one on that GPU that is not free. Without a lock: it may be of
// another stream by then, or of none.
template <class Visit>
void for_each_stream_work(uint32_t gpu, Visit visit);
template <class Visit>
void for_each_stream_work(Visit visit);  // on any
// The context of its stream; asked without its lock.
CUcontext context_of(StreamWork& work);

// Makes a context current for a while, where it is not.
class ContextScope {
 public:
  explicit ContextScope(CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  bool ok() const { return ok_; }
  bool was_current() const { return ok_ && !pushed_; }

 private:
  bool ok_ = false;
  bool pushed_ = false;
};

namespace detail {
inline constexpr uint32_t kPerChunk = 64;
inline constexpr uint32_t kChunks = 512;  // 32768 streams
struct Streams {
  // Read at every launch, written when a stream or a context ends.
  alignas(64) std::atomic<uint64_t> generation;
  alignas(64) std::atomic<uint32_t> used;  // works ever handed out
  std::atomic<uint32_t> captures;          // begun or beginning
  std::atomic<uint32_t> beginning;         // of them
  Lock lock;                               // of all below; taken before a work's lock, never after
  StreamWork* free;
  StreamWork* chunk[kChunks];
  StreamWork* bucket[256];
};
extern Streams streams;
}  // namespace detail

template <class Visit>
void for_each_stream_work(Visit visit) {
  const uint32_t used = detail::streams.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    StreamWork& work = detail::streams.chunk[i / detail::kPerChunk][i % detail::kPerChunk];
    if (work.life.load(std::memory_order_acquire) != StreamState::Free) visit(work);
  }
}

template <class Visit>
void for_each_stream_work(uint32_t gpu, Visit visit) {
  for_each_stream_work([&](StreamWork& work) {
    if (work.gpu() == gpu) visit(work);
  });
}

}  // namespace gantry::fence
