// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/pools.hpp"

#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/memory.hpp"

#include <string.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

void shrink_to(Pool& pool, uint64_t keep) {
  const uint64_t needed = round_up(pool.used, kPoolStep);
  const uint64_t goal = needed > keep ? needed : keep;
  if (pool.reserved <= goal) return;
  uncharge(*pool.device, pool.reserved - goal);
  pool.reserved = goal;
}

CUresult allocate_from(Pool& pool, uint64_t bytes, Context& context, CUdeviceptr* pointer) {
  if (bytes > pool.device->total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult result = enter_pool(pool, bytes); result != CUDA_SUCCESS) return result;
  Block wanted{};
  wanted.address = reserve_addresses(bytes, Reach::Anywhere);
  wanted.data = map_memory(bytes);
  wanted.size = bytes;
  wanted.space = Space::Pooled;
  wanted.charged = bytes;
  wanted.context = &context;
  wanted.device = pool.device;
  wanted.pool = &pool;
  if (wanted.address == 0 || wanted.data == nullptr || add_block(wanted) == nullptr) {
    release_addresses(wanted.address, wanted.address == 0 ? 0 : bytes);
    unmap_memory(wanted.data, bytes);
    leave_pool(pool, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = wanted.address;
  return CUDA_SUCCESS;
}

uint64_t* pool_counter(Pool& pool, CUmemPool_attribute which) {
  switch (which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool.threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool.used_high;
    default: return nullptr;
  }
}

bool is_reuse(CUmemPool_attribute which) {
  return which >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         which <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

bool is_pool_import(const Block& block) {
  return block.space == Space::Imported && block.pool != nullptr;
}

// Memory that was imported twice exists until it is freed twice.
void drop_pooled(Block& block) {
  if (is_pool_import(block) && --block.flags != 0) return;
  release(block);
}

Pool* make_pool(Device& device, uint64_t max_bytes) {
  auto* pool = make<Pool>(nullptr);
  if (pool == nullptr) return nullptr;
  pool->device = &device;
  pool->max_bytes = max_bytes;
  for (int& allowed : pool->reuse) allowed = 1;
  return pool;
}

Pool* default_pool(Device& device) {
  if (device.default_pool == nullptr) {
    device.default_pool = make_pool(device, 0);
    if (device.pool == nullptr) device.pool = device.default_pool;
  }
  return device.default_pool;
}

CUresult enter_pool(Pool& pool, uint64_t bytes) {
  const uint64_t wanted = round_up(pool.used + bytes, kPoolStep);
  if (pool.max_bytes != 0 && pool.used + bytes > pool.max_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (wanted > pool.reserved) {
    const CUresult result = charge(*pool.device, wanted - pool.reserved);
    if (result != CUDA_SUCCESS) return result;
    pool.reserved = wanted;
    if (pool.reserved > pool.reserved_high) pool.reserved_high = pool.reserved;
  }
  pool.used += bytes;
  if (pool.used > pool.used_high) pool.used_high = pool.used;
  return CUDA_SUCCESS;
}

void leave_pool(Pool& pool, uint64_t bytes) {
  pool.used -= bytes < pool.used ? bytes : pool.used;
}

void shrink_pools(Device& device) {
  size_t cursor = 0;
  while (Object* object = next_of(nullptr, Kind::Pool, cursor)) {
    auto* pool = static_cast<Pool*>(object);
    if (pool->device == &device) shrink_to(*pool, pool->threshold);
  }
}

namespace entry {

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  Device* device = device_at(dev);
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *pool_out = handle_of<CUmemoryPool>(default_pool(*device));
  return *pool_out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  const CUresult result = entry::cuDeviceGetDefaultMemPool(pool, dev);
  if (result == CUDA_SUCCESS) *pool = handle_of<CUmemoryPool>(device_at(dev)->pool);
  return result;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  Device* device = device_at(dev);
  Pool* known = find<Pool>(pool);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (known == nullptr || known->device != device || known->imported)
    return CUDA_ERROR_INVALID_VALUE;
  device->pool = known;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location,
                                CUmemAllocationType type) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  return entry::cuDeviceGetDefaultMemPool(pool_out, location->id);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  return entry::cuDeviceGetMemPool(pool, location->id);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  return entry::cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  Stream* in = nullptr;
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Device& device = *in->context->device;
  bool records = false;
  if (const CUresult result = recording(*in, records); result != CUDA_SUCCESS) return result;
  if (records) return record_allocation(*in, bytes, device, pointer);
  if (default_pool(device) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  return allocate_from(*device.pool, bytes, *in->context, pointer);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  Stream* in = nullptr;
  Pool* known = find<Pool>(pool);
  if (pointer == nullptr || bytes == 0 || known == nullptr || known->imported)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  bool records = false;
  if (const CUresult result = recording(*in, records); result != CUDA_SUCCESS) return result;
  if (records) return record_allocation(*in, bytes, *known->device, pointer);
  return allocate_from(*known, bytes, *in->context, pointer);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  Stream* in = nullptr;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  bool records = false;
  if (const CUresult result = recording(*in, records); result != CUDA_SUCCESS) return result;
  if (records) return record_free(*in, pointer);
  if (free_graph_memory(pointer)) return CUDA_SUCCESS;
  Block* block = block_at(pointer);
  if (block == nullptr || block->address != pointer) return CUDA_ERROR_INVALID_VALUE;
  if (block->space != Space::Pooled && block->space != Space::Device && !is_pool_import(*block))
    return CUDA_ERROR_INVALID_VALUE;
  drop_pooled(*block);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* pool_props) {
  if (pool == nullptr || pool_props == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pool_props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (pool_props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = device_at(pool_props->location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Pool* made = make_pool(*device, pool_props->maxSize);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->handle_types = static_cast<uint32_t>(pool_props->handleTypes);
  *pool = handle_of<CUmemoryPool>(made);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Pool* known = find<Pool>(pool);
  if (known == nullptr || known == known->device->default_pool) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  while (Block* block = block_after(address)) {
    address = block->address;
    if (block->pool == known) release(*block);
  }
  shrink_to(*known, 0);
  if (known->device->pool == known) known->device->pool = known->device->default_pool;
  if (known->shared_id != 0 && !known->imported) close(known->file);
  destroy(known);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep) {
  Pool* known = find<Pool>(pool);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  shrink_to(*known, min_bytes_to_keep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  Pool* known = find<Pool>(pool);
  if (known == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_reuse(which)) {
    memcpy(value, &known->reuse[which], sizeof(int));
    return CUDA_SUCCESS;
  }
  const uint64_t* from = pool_counter(*known, which);
  if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(value, from, sizeof *from);
  return CUDA_SUCCESS;
}

// The high watermarks can be reset to zero; the other counters cannot be set.
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  Pool* known = find<Pool>(pool);
  if (known == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_reuse(which)) {
    memcpy(&known->reuse[which], value, sizeof(int));
    return CUDA_SUCCESS;
  }
  uint64_t wanted = 0;
  uint64_t* to = pool_counter(*known, which);
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(&wanted, value, sizeof wanted);
  if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    *to = wanted;
    return CUDA_SUCCESS;
  }
  if (wanted != 0) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) *to = known->reserved;
  if (which == CU_MEMPOOL_ATTR_USED_MEM_HIGH) *to = known->used;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  if (find<Pool>(pool) == nullptr || (map == nullptr && count != 0))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        device_at(map[i].location.id) == nullptr)
      return CUDA_ERROR_INVALID_DEVICE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool mem_pool,
                            CUmemLocation* location) {
  const Pool* known = find<Pool>(mem_pool);
  if (flags == nullptr || known == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool own =
      location->type == CU_MEM_LOCATION_TYPE_DEVICE && device_at(location->id) == known->device;
  *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
