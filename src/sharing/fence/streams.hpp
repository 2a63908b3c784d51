// SPDX-License-Identifier: Apache-2.0
// The streams that have been given work, by handle. Each thread remembers where it launched last,
// so that a launch looks nothing up.
#pragma once

#include "sharing/fence/work.hpp"

namespace gantry::fence {

// The work of that stream (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle), made where there is
// none. nullptr: not one to be counted (a stream that is capturing, no context, a GPU that is not
// of the share).
Work* work_of(CUstream stream);
// Only if there is one already.
Work* known_work(CUstream stream);
// This thread may have another current context now.
void context_changed();
// The stream is about to be destroyed.
void stream_ends(CUstream stream);
// A destroyed stream's work has ended: there is room for another.
void release_ended(Work& work);
// The context is about to be destroyed.
void context_ends(CUcontext context);
// A capture is about to begin (counted), is under way, or has ended. While it begins no event of
// ours is recorded or asked for anywhere: on an H200 that ends it. While it is under way the legacy
// stream is left alone.
void capture_begins();
void capture_begun();
void capture_over();
bool captures_open();
// The stream may become part of a capture: whoever looks after it waits until this ends.
class JoinsCapture {
 public:
  explicit JoinsCapture(CUstream stream);
  ~JoinsCapture();
  JoinsCapture(const JoinsCapture&) = delete;
  JoinsCapture& operator=(const JoinsCapture&) = delete;

 private:
  Work* work_;
};
void forget_streams();

// Calls visit(Work&) for every one on that GPU that is not free. Without a lock: it may be of
// another stream by then, or of none.
template <class Visit>
void each_work(uint32_t gpu, Visit visit);
template <class Visit>
void each_work(Visit visit);  // on any
// The context of its stream; asked without its lock.
CUcontext context_of(Work& work);

// Makes a context current for a while, where it is not.
class InContext {
 public:
  explicit InContext(CUcontext context);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
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
  Work* free;
  Work* chunk[kChunks];
  Work* bucket[256];
};
extern Streams streams;
}  // namespace detail

template <class Visit>
void each_work(Visit visit) {
  const uint32_t used = detail::streams.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    Work& work = detail::streams.chunk[i / detail::kPerChunk][i % detail::kPerChunk];
    if (work.life.load(std::memory_order_acquire) != Life::Free) visit(work);
  }
}

template <class Visit>
void each_work(uint32_t gpu, Visit visit) {
  each_work([&](Work& work) {
    if (work.gpu() == gpu) visit(work);
  });
}

}  // namespace gantry::fence
