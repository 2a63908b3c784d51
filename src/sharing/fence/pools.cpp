// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/pools.hpp"

#include "sharing/fence/allocations.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/handle_table.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/reclaim.hpp"

namespace gantry::fence {
namespace {

struct Pools {
  HandleTable known;  // by handle: Entry.bytes is the charge
  uint32_t in_use;    // some pool holds memory
};
constinit Pools pools{};

CUmemoryPool pool_of(uint64_t key) {
  return reinterpret_cast<CUmemoryPool>(key);
}

bool read_pool(CUmemoryPool pool, CUmemPool_attribute what, uint64_t& value) {
  return real().cuMemPoolGetAttribute(pool, what, &value) == CUDA_SUCCESS;
}

bool know(CUmemoryPool pool, uint32_t gpu) {
  Entry entry{};
  return pools.known.find(key_of(pool), entry) || pools.known.put({.key = key_of(pool),
                                                                   .bytes = 0,
                                                                   .other = 0,
                                                                   .context = nullptr,
                                                                   .gpu = gpu,
                                                                   .count = 0});
}

// Updates the charge to the pool's own value; true if that is less than before.
bool settle_pool(Entry& entry) {
  uint64_t reserved = 0;
  if (!read_pool(pool_of(entry.key), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved)) return false;
  const uint64_t before = entry.bytes;
  entry.bytes = reserved;
  if (reserved > before) charge_unconditionally(entry.gpu, reserved - before);
  if (reserved < before) release_reserved(entry.gpu, before - reserved);
  return reserved < before;
}

void settle_one(CUmemoryPool pool) {
  pools.known.update(key_of(pool), [](Entry& entry) { settle_pool(entry); });
}

void settle_all_pools() {
  bool any = false;
  pools.known.each([&any](Entry& entry) {
    settle_pool(entry);
    any = any || entry.bytes != 0;
  });
  __atomic_store_n(&pools.in_use, any ? 1 : 0, __ATOMIC_RELAXED);
}

uint64_t charged(CUmemoryPool pool) {
  Entry entry{};
  return pools.known.find(key_of(pool), entry) ? entry.bytes : 0;
}

// Computes and reserves how much the pool will grow. Making room may shrink this pool itself; then
// it computes again.
bool reserve_growth(CUmemoryPool pool, uint32_t gpu, uint64_t bytes, uint64_t& growth,
                    MemoryCall& underway) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    uint64_t used = 0;
    if (!read_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used)) used = charged(pool);
    const uint64_t wanted =
        bytes > UINT64_MAX - used ? UINT64_MAX : round_up(used + bytes, kPoolStep);
    const uint64_t now = charged(pool);
    growth = wanted > now ? wanted - now : 0;
    if (growth == 0) return true;
    const bool fits = reserve(gpu, growth, underway);
    if (charged(pool) == now) return fits;
    if (fits) release_reserved(gpu, growth);
    underway.end();
  }
  return false;
}

bool is_capturing(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return real().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// The previous charge and `growth` are reserved. Updates this to what the pool really has.
bool settle_growth(CUmemoryPool pool, uint32_t gpu, uint64_t growth) {
  if (growth != 0) pools.known.update(key_of(pool), [&](Entry& entry) { entry.bytes += growth; });
  uint64_t reserved = 0;
  const uint64_t paid = charged(pool);
  if (!read_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved) || reserved == paid)
    return true;
  const bool fits = reserved <= paid || reserve(gpu, reserved - paid);
  if (fits && reserved > paid)
    pools.known.update(key_of(pool), [&](Entry& entry) { entry.bytes = reserved; });
  settle_one(pool);
  return fits;
}

// `stream` names the default stream that is meant.
template <class Call>
CUresult allocate_in_pool(CUmemoryPool pool, uint32_t gpu, uint64_t bytes, CUstream stream,
                          CUdeviceptr* pointer, Call call) {
  if (gpu == kNoGpu) return call(pointer);
  const SettleLock guard;
  if (!know(pool, gpu)) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t growth = 0;
  MemoryCall underway;
  if (!reserve_growth(pool, gpu, bytes, growth, underway))
    return is_capturing(stream) ? call(pointer) : refused(gpu, bytes);
  CUdeviceptr made = 0;
  const CUresult result = call(&made);
  __atomic_store_n(&pools.in_use, 1, __ATOMIC_RELAXED);
  const bool fits = settle_growth(pool, gpu, growth);
  if (result != CUDA_SUCCESS) return result;
  if (fits) {
    *pointer = made;
    return result;
  }
  real().cuMemFreeAsync(made, stream);
  real().cuStreamSynchronize(stream);
  real().cuMemPoolTrimTo(pool, 0);
  settle_one(pool);
  return refused(gpu, bytes);
}

// The device of a stream, which may differ from that of the current context.
bool device_of_stream(CUstream stream, CUdevice& device) {
  const bool plain =
      stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  CUcontext context = nullptr;
  if (plain && more_than_one_device() && real().cuStreamGetCtx(stream, &context) == CUDA_SUCCESS &&
      context != nullptr && context != current_context()) {
    if (real().cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return false;
    const CUresult result = real().cuCtxGetDevice(&device);
    real().cuCtxPopCurrent_v2(&context);
    return result == CUDA_SUCCESS;
  }
  return real().cuCtxGetDevice(&device) == CUDA_SUCCESS;
}

template <class Call>
CUresult allocate_here(uint64_t bytes, CUstream stream, CUdeviceptr* pointer, Call call) {
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;
  if (!attached() || pointer == nullptr || bytes == 0 || !device_of_stream(stream, device) ||
      real().cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
    return call(pointer);
  return allocate_in_pool(pool, gpu_of(device), bytes, stream, pointer, call);
}

uint32_t gpu_of_default(CUmemoryPool pool) {
  CUmemoryPool each = nullptr;
  for (CUdevice device = 0; real().cuDeviceGetDefaultMemPool(&each, device) == CUDA_SUCCESS;
       ++device) {
    if (each == pool) return gpu_of(device);
  }
  return kNoGpu;
}

template <class Call>
CUresult allocate_from(CUmemoryPool pool, uint64_t bytes, CUstream stream, CUdeviceptr* pointer,
                       Call call) {
  Entry entry{};
  entry.gpu = kNoGpu;
  if (!attached() || pointer == nullptr || bytes == 0) return call(pointer);
  if (!pools.known.find(key_of(pool), entry)) {
    // A default pool, or a pool that is not on a GPU of the share.
    entry.gpu = gpu_of_default(pool);
  }
  return allocate_in_pool(pool, entry.gpu, bytes, stream, pointer, call);
}

}  // namespace

void pools_synced() {
  if (__atomic_load_n(&pools.in_use, __ATOMIC_RELAXED) == 0) return;
  const SettleLock guard;
  settle_all_pools();
}

void pools_changed() {
  const SettleLock guard;
  settle_all_pools();
}

bool reclaim_pools(uint32_t gpu) {
  const SettleLock guard;
  MemoryCall underway;
  underway.begin(gpu);
  bool less = false;
  pools.known.each([&](Entry& entry) {
    if (entry.gpu != gpu) return;
    real().cuMemPoolTrimTo(pool_of(entry.key), 0);
    less = settle_pool(entry) || less;
  });
  return less;
}

void reset_pools_after_fork() {
  pools.known.forget();
  pools.in_use = 0;
}

}  // namespace gantry::fence

using namespace gantry::fence;

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return allocate_here(bytes, stream == nullptr ? CU_STREAM_LEGACY : stream, pointer,
                       [&](CUdeviceptr* to) { return real().cuMemAllocAsync(to, bytes, stream); });
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return allocate_here(
      bytes, stream == nullptr ? CU_STREAM_PER_THREAD : stream, pointer,
      [&](CUdeviceptr* to) { return real().cuMemAllocAsync_ptsz(to, bytes, stream); });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return allocate_from(
      pool, bytes, stream == nullptr ? CU_STREAM_LEGACY : stream, pointer,
      [&](CUdeviceptr* to) { return real().cuMemAllocFromPoolAsync(to, bytes, pool, stream); });
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return allocate_from(pool, bytes, stream == nullptr ? CU_STREAM_PER_THREAD : stream, pointer,
                       [&](CUdeviceptr* to) {
                         return real().cuMemAllocFromPoolAsync_ptsz(to, bytes, pool, stream);
                       });
}

// May also be called with memory from cuMemAlloc.
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  if (!attached()) return real().cuMemFreeAsync(pointer, stream);
  PendingFree leaving(pointer);
  return leaving.done(real().cuMemFreeAsync(pointer, stream));
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  if (!attached()) return real().cuMemFreeAsync_ptsz(pointer, stream);
  PendingFree leaving(pointer);
  return leaving.done(real().cuMemFreeAsync_ptsz(pointer, stream));
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* pool_props) {
  const CUresult result = real().cuMemPoolCreate(pool, pool_props);
  if (result != CUDA_SUCCESS || !attached() ||
      pool_props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return result;
  const uint32_t gpu = gpu_of(pool_props->location.id);
  if (gpu != kNoGpu && know(*pool, gpu)) return result;
  real().cuMemPoolDestroy(*pool);  // memory that cannot be counted is refused
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Its remaining allocations stay until they are freed; the host measures them.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  if (!attached()) return real().cuMemPoolDestroy(pool);
  const SettleLock guard;
  const CUresult result = real().cuMemPoolDestroy(pool);
  Entry entry{};
  if (result == CUDA_SUCCESS && pools.known.take(key_of(pool), entry))
    release_reserved(entry.gpu, entry.bytes);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep) {
  if (!attached()) return real().cuMemPoolTrimTo(pool, min_bytes_to_keep);
  const SettleLock guard;
  const CUresult result = real().cuMemPoolTrimTo(pool, min_bytes_to_keep);
  settle_one(pool);
  return result;
}
