// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/streams.hpp"

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpu_turn.hpp"
#include "sharing/fence/gpus.hpp"

#include <sys/mman.h>

namespace gantry::fence {

namespace detail {
constinit Streams streams{};
}
using detail::streams;

namespace {

// This thread's last lookups. Valid for one generation of streams.
struct StreamLookupCache {
  uint64_t generation;
  StreamWork* legacy;
  StreamWork* per_thread;
  struct {
    CUstream stream;
    StreamWork* work;
  } way[8];
};
thread_local constinit StreamLookupCache remembered{};

bool is_default(CUstream stream) {
  return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

StreamLookupCache& up_to_date() {
  StreamLookupCache& mine = remembered;
  const uint64_t now = streams.generation.load(std::memory_order_acquire);
  if (__builtin_expect(mine.generation != now, 0)) {
    mine = {};
    mine.generation = now;
  }
  return mine;
}

struct Key {
  CUstream stream;
  CUcontext context;   // of a default stream
  const void* thread;  // of a per-thread one

  bool matches(const StreamWork& work) const {
    return work.stream == stream && (context == nullptr || work.context == context) &&
           work.thread == thread;
  }
  uint64_t bucket() const {
    const uint64_t mixed = reinterpret_cast<uintptr_t>(stream) ^
                           (reinterpret_cast<uintptr_t>(context) << 7U) ^
                           (reinterpret_cast<uintptr_t>(thread) << 3U);
    return (mixed * 0x9e3779b97f4a7c15ULL) >> 56U;
  }
};

bool make_key(CUstream stream, Key& key) {
  key = {.stream = stream, .context = nullptr, .thread = nullptr};
  if (!is_default(stream)) return true;
  if (stream == CU_STREAM_PER_THREAD) key.thread = &remembered;
  return real().cuCtxGetCurrent(&key.context) == CUDA_SUCCESS && key.context != nullptr;
}

// Called with the table's lock held.
StreamWork* find(const Key& key) {
  StreamWork* work = streams.bucket[key.bucket()];
  while (work != nullptr && !key.matches(*work)) work = work->next;
  return work;
}

// Called with the table's lock held. Uses mmap, because the program's allocator must not be called
// here.
StreamWork* unused() {
  if (StreamWork* work = streams.free) {
    streams.free = work->next;
    return work;
  }
  const uint32_t index = streams.used.load(std::memory_order_relaxed);
  if (index == detail::kChunks * detail::kPerChunk) return nullptr;
  StreamWork*& chunk = streams.chunk[index / detail::kPerChunk];
  if (chunk == nullptr) {
    void* made = mmap(nullptr, detail::kPerChunk * sizeof(StreamWork), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    chunk = static_cast<StreamWork*>(made);
  }
  streams.used.store(index + 1, std::memory_order_release);
  return &chunk[index % detail::kPerChunk];
}

CUcontext context_for(const Key& key) {
  CUcontext context = key.context;
  if (context == nullptr && real().cuStreamGetCtx(key.stream, &context) != CUDA_SUCCESS)
    context = nullptr;
  if (context == nullptr && real().cuCtxGetCurrent(&context) != CUDA_SUCCESS) context = nullptr;
  return context;
}

uint32_t gpu_in(CUcontext context) {
  const ContextScope in(context);
  CUdevice device = 0;
  if (!in.ok() || real().cuCtxGetDevice(&device) != CUDA_SUCCESS) return kNoGpu;
  const uint32_t gpu = gpu_of(device);
  return gpu < FENCE_MAX_GPUS ? gpu : kNoGpu;
}

void begin(StreamWork& work, const Key& key, CUcontext context, uint32_t gpu) {
  const Guard guard(work.lock);
  work.stream = key.stream;
  work.context = context;
  work.thread = key.thread;
  const EventAccess reach = key.thread != nullptr            ? EventAccess::OwnThread
                            : key.stream == CU_STREAM_LEGACY ? EventAccess::NotInCapture
                                                             : EventAccess::Anyone;
  work.on_gpu.store(gpu, std::memory_order_relaxed);
  work.reached_by.store(reach, std::memory_order_relaxed);
  const uint64_t done = work.done.load(std::memory_order_relaxed);
  work.begun.store(done, std::memory_order_relaxed);
  work.completed.store(done, std::memory_order_relaxed);
  work.next_mark.store(done + 1, std::memory_order_relaxed);
  work.marked = done;
  work.last_mark_ns = monotonic_ns();
  work.last_gate = ~0U;
  work.tail_until_ns = 0;
  work.graph = nullptr;
  work.graph_ns = work.graphs = 0;
  work.cost = {};
  const bool known = turn_of(gpu).cost_ns.load(std::memory_order_relaxed) != 0;
  work.window = known ? kKnownCostWindow : kFirstWindow;
  work.life.store(StreamState::Alive, std::memory_order_release);
}

// Too many streams do not bypass the gate: the last ones share another stream's entry.
StreamWork* anyone_on(uint32_t gpu) {
  StreamWork* found = nullptr;
  for_each_stream_work(gpu, [&found](StreamWork& work) { found = &work; });
  return found;
}

// Calls the driver before it takes the table's lock.
StreamWork* look_up(CUstream stream) {
  Key key{};
  if (!make_key(stream, key)) return nullptr;
  {
    const Guard guard(streams.lock);
    if (StreamWork* work = find(key)) return work;
  }
  if (stream_is_capturing(stream)) return nullptr;
  const CUcontext context = context_for(key);
  const uint32_t gpu = gpu_in(context);
  if (gpu == kNoGpu) return nullptr;
  const Guard guard(streams.lock);
  if (StreamWork* work = find(key)) return work;
  StreamWork* work = unused();
  if (work == nullptr) return anyone_on(gpu);
  begin(*work, key, context, gpu);
  StreamWork*& bucket = streams.bucket[key.bucket()];
  work->next = bucket;
  bucket = work;
  return work;
}

// Called with the table's lock held.
void unlink(StreamWork& work) {
  const Key key{.stream = work.stream,
                .context = is_default(work.stream) ? work.context : nullptr,
                .thread = work.thread};
  StreamWork** link = &streams.bucket[key.bucket()];
  while (*link != nullptr && *link != &work) link = &(*link)->next;
  if (*link != nullptr) *link = work.next;
}

// Destroys the events while the context exists: a primary context may stay if others hold it.
void end_all(CUcontext context) {
  const ContextScope in(context);
  const uint32_t used = streams.used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    StreamWork& work = streams.chunk[i / detail::kPerChunk][i % detail::kPerChunk];
    const StreamState life = work.life.load(std::memory_order_relaxed);
    if (life == StreamState::Free || work.context != context) continue;
    if (life == StreamState::Alive) unlink(work);
    const Guard guard(work.lock);
    recycle(work);
    abandon(work);
    work.life.store(StreamState::Free, std::memory_order_release);
    work.next = streams.free;
    streams.free = &work;
  }
}

}  // namespace

ContextScope::ContextScope(CUcontext context) {
  CUcontext current = nullptr;
  if (context == nullptr) return;
  if (real().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) {
    ok_ = true;
    return;
  }
  ok_ = pushed_ = real().cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  if (pushed_) real().cuCtxPopCurrent_v2(&popped);
}

StreamWork* stream_work(CUstream stream) {
  StreamLookupCache& mine = up_to_date();
  if (__builtin_expect(is_default(stream), 0)) {
    StreamWork*& known = stream == CU_STREAM_LEGACY ? mine.legacy : mine.per_thread;
    if (known == nullptr) known = look_up(stream);
    return known;
  }
  auto& way = mine.way[(reinterpret_cast<uintptr_t>(stream) >> 4U) % 8];
  if (__builtin_expect(way.stream == stream, 1)) return way.work;
  StreamWork* work = look_up(stream);
  if (work != nullptr) way = {stream, work};
  return work;
}

CUcontext context_of(StreamWork& work) {
  const Guard guard(work.lock);
  return work.context;
}

StreamWork* find_stream_work(CUstream stream) {
  Key key{};
  if (!make_key(stream, key)) return nullptr;
  const Guard guard(streams.lock);
  return find(key);
}

void context_changed() {
  remembered.legacy = remembered.per_thread = nullptr;
}

// Marks its last work while that is possible; work that still runs is watched until it ends.
void before_stream_destroy(CUstream stream) {
  StreamWork* work = find_stream_work(stream);
  if (work == nullptr || is_default(stream)) return;
  const bool captures = stream_is_capturing(stream);
  const ContextScope in(work->context);
  const Guard table(streams.lock);
  unlink(*work);
  streams.generation.fetch_add(1, std::memory_order_release);
  const Guard guard(work->lock);
  if (!captures && in.ok()) mark(*work, monotonic_ns());
  work->life.store(StreamState::Ended, std::memory_order_release);
}

void release_ended(StreamWork& work) {
  const Guard table(streams.lock);
  {
    const Guard guard(work.lock);
    if (work.life.load(std::memory_order_relaxed) != StreamState::Ended || work.count != 0) return;
    const ContextScope in(work.context);
    recycle(work);
    work.life.store(StreamState::Free, std::memory_order_release);
  }
  work.next = streams.free;
  streams.free = &work;
}

void before_context_destroy(CUcontext context) {
  if (context == nullptr) return;
  const Guard guard(streams.lock);
  end_all(context);
  streams.generation.fetch_add(1, std::memory_order_release);
  context_changed();
}

// Queries about a stream are made with that stream's lock held. When this returns, they have ended,
// or will see the count.
void begin_capture() {
  streams.captures.fetch_add(1, std::memory_order_seq_cst);
  streams.beginning.fetch_add(1, std::memory_order_seq_cst);
  for_each_stream_work([](StreamWork& work) { const Guard guard(work.lock); });
}

void capture_started() {
  streams.beginning.fetch_sub(1, std::memory_order_seq_cst);
}

bool capture_is_beginning() {
  return streams.beginning.load(std::memory_order_seq_cst) != 0;
}

void end_capture() {
  uint32_t open = streams.captures.load(std::memory_order_relaxed);
  while (open != 0 && !streams.captures.compare_exchange_weak(open, open - 1)) {
  }
}

bool captures_open() {
  return streams.captures.load(std::memory_order_seq_cst) != 0;
}

CaptureJoinGuard::CaptureJoinGuard(CUstream stream) : work_(find_stream_work(stream)) {
  if (work_ != nullptr) work_->lock.lock();
}

CaptureJoinGuard::~CaptureJoinGuard() {
  if (work_ != nullptr) work_->lock.unlock();
}

// The events belong to a driver that the child does not have.
void reset_streams_after_fork() {
  streams.lock.reset();
  const uint32_t used = streams.used.load(std::memory_order_relaxed);
  streams.free = nullptr;
  for (StreamWork*& bucket : streams.bucket) bucket = nullptr;
  for (uint32_t i = 0; i < used; ++i) {
    StreamWork& work = streams.chunk[i / detail::kPerChunk][i % detail::kPerChunk];
    work.lock.reset();
    work.count = 0;
    for (Mark& mark : work.marks) mark.event = nullptr;
    work.life.store(StreamState::Free, std::memory_order_relaxed);
    work.next = streams.free;
    streams.free = &work;
  }
  streams.captures.store(0, std::memory_order_relaxed);
  streams.beginning.store(0, std::memory_order_relaxed);
  streams.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace gantry::fence
