// SPDX-License-Identifier: Apache-2.0
// The streams that have work, by handle. Each thread remembers its last stream, so that most
// launches need no lookup.
#pragma once

#include "sharing/fence/stream_work.hpp"

namespace gantry::fence {

// Returns the work of the stream (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle), and creates
// it if necessary. nullptr if it is not counted: the stream is capturing, there is no context, or
// the GPU is not in the share.
StreamWork* stream_work(CUstream stream);
// The same, but nullptr if there is none yet.
StreamWork* find_stream_work(CUstream stream);
// The current context of this thread may have changed.
void context_changed();
// The stream is about to be destroyed.
void before_stream_destroy(CUstream stream);
// The work of a destroyed stream has ended; its entry can be reused.
void release_ended(StreamWork& work);
// The context is about to be destroyed.
void before_context_destroy(CUcontext context);
// A capture is about to begin (counted), is in progress, or has ended. While it begins, the fence
// records and queries no events: on an H200 that would end the capture. While it is in progress,
// the fence does not use the legacy stream.
void begin_capture();
void capture_started();
void end_capture();
bool captures_open();
// The stream may become part of a capture: other threads that use its work wait until this ends.
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

// Calls visit(Work&) for every entry on that GPU that is not free. Takes no lock: the entry may
// belong to another stream by then, or to none.
template <class Visit>
void for_each_stream_work(uint32_t gpu, Visit visit);
template <class Visit>
void for_each_stream_work(Visit visit);  // on any GPU
// The context of its stream; read without its lock.
CUcontext context_of(StreamWork& work);

// Makes a context current for the lifetime of this object, if it is not current yet.
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
  alignas(64) std::atomic<uint32_t> used;  // number of entries ever used
  std::atomic<uint32_t> captures;          // begun or beginning
  std::atomic<uint32_t> beginning;         // of them
  Lock lock;  // protects all below; taken before a work's lock, never after it
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
