// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory, and queries of pointers.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/memory.hpp"

#include <string.h>

namespace gantry::sim::cuda {
namespace {

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

template <class T>
void give(void* out, T value) {
  memcpy(out, &value, sizeof value);
}

bool on_host(const Block& block) {
  return block.space == Space::Host || block.space == Space::Registered;
}

// False for an attribute we do not know.
bool pointer_attribute(const Block& block, CUpointer_attribute which, uint64_t address, void* out) {
  const Device* device = block.device != nullptr ? block.device : block.context->device;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: give(out, handle_of<CUcontext>(block.context)); return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      give(out, on_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      give(out, static_cast<CUdeviceptr>(address));
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      give(out, on_host(block) || block.space == Space::Managed ? reinterpret_cast<void*>(address)
                                                                : nullptr);
      return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: give(out, 0U); return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      give(out, static_cast<unsigned long long>(block.id));
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      give(out, block.space == Space::Managed ? 1U : 0U);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      give(out, static_cast<int>(device - driver.device));
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      give(out, block.space == Space::Device ? 1U : 0U);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      give(out, reinterpret_cast<void*>(block.address));
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: give(out, static_cast<size_t>(block.size)); return true;
    case CU_POINTER_ATTRIBUTE_MAPPED: give(out, 1U); return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: give(out, 0ULL); return true;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      give(out, block.space == Space::Device ? 1U : 0U);
      return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      give(out, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      give(out, handle_of<CUmemoryPool>(block.pool));
      return true;
  }
  return false;
}

}  // namespace

namespace entry {

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  Block wanted{};
  wanted.data = map_memory(bytes);
  wanted.address = address_of(wanted.data);
  wanted.size = bytes;
  wanted.space = Space::Host;
  wanted.flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
  wanted.context = context;
  if (wanted.data == nullptr || add_block(wanted) == nullptr) {
    unmap_memory(wanted.data, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = wanted.data;
  return CUDA_SUCCESS;
}
CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return entry::cuMemHostAlloc(pointer, bytes, 0);
}
CUresult cuMemAllocHost(void** pointer, unsigned int bytes) {
  return entry::cuMemHostAlloc(pointer, bytes, 0);
}

CUresult cuMemFreeHost(void* p) {
  Block* block = block_at(address_of(p));
  if (p == nullptr || block == nullptr || block->space != Space::Host ||
      block->address != address_of(p))
    return CUDA_ERROR_INVALID_VALUE;
  release(*block);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned int flags) {
  if (p == nullptr || bytes == 0 || flags > 15) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  if (overlaps(address_of(p), bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Block wanted{};
  wanted.data = static_cast<char*>(p);
  wanted.address = address_of(p);
  wanted.size = bytes;
  wanted.space = Space::Registered;
  wanted.flags = flags;
  wanted.context = context;
  return add_block(wanted) == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* p, size_t bytes, unsigned int flags) {
  return entry::cuMemHostRegister_v2(p, bytes, flags);
}

CUresult cuMemHostUnregister(void* p) {
  Block* block = block_at(address_of(p));
  if (p == nullptr || block == nullptr || block->space != Space::Registered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  release(*block);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pointer, void* p, unsigned int flags) {
  const Block* block = block_at(address_of(p));
  if (pointer == nullptr || flags != 0 || block == nullptr || !on_host(*block))
    return CUDA_ERROR_INVALID_VALUE;
  *pointer = address_of(p);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pointer, void* p, unsigned int) {
  if (pointer == nullptr || block_at(address_of(p)) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;  // the address does not fit into 32 bits
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* p) {
  const Block* block = block_at(address_of(p));
  if (flags == nullptr || block == nullptr || !on_host(*block)) return CUDA_ERROR_INVALID_VALUE;
  *flags = block->flags;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr ptr) {
  const Block* block = block_at(ptr);
  if (data == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return pointer_attribute(*block, which, ptr, data) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A pointer that CUDA does not know is not an error here: its attributes are empty.
CUresult cuPointerGetAttributes(unsigned int num_attributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Block* block = block_at(ptr);
  for (unsigned i = 0; i < num_attributes; ++i) {
    if (block != nullptr) {
      if (!pointer_attribute(*block, attributes[i], ptr, data[i])) return CUDA_ERROR_INVALID_VALUE;
    } else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
      give(data[i], static_cast<int>(CU_DEVICE_INVALID));
    } else if (attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
               attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
               attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
      give(data[i], 0ULL);
    } else {
      give(data[i], 0U);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute which, CUdeviceptr ptr) {
  if (value == nullptr || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || block_at(ptr) == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
