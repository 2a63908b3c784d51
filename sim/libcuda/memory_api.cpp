// SPDX-License-Identifier: Apache-2.0
// Entry points for plain, pitched and managed device memory.
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/memory.hpp"
#include "sim/libcuda/pools.hpp"

#include <limits.h>

namespace gantry::sim::cuda {
namespace {

constexpr uint64_t kPitch = 512;

CUresult allocate_here(uint64_t bytes, Reach reach, uint64_t& address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_while_capturing(); result != CUDA_SUCCESS) return result;
  Block* block = nullptr;
  const CUresult result = allocate(*context, bytes, reach, block);
  if (result == CUDA_SUCCESS) address = block->address;
  return result;
}

CUresult pitched(size_t width, size_t height, unsigned element, Reach reach, uint64_t& address,
                 uint64_t& pitch) {
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  if (width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (width > (1ULL << 40U) || height > (1ULL << 40U)) return CUDA_ERROR_OUT_OF_MEMORY;
  pitch = round_up(width, kPitch);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(pitch, static_cast<uint64_t>(height), &bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  return allocate_here(bytes, reach, address);
}

CUresult memory_information(uint64_t& free, uint64_t& total) {
  const Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Device& device = *context->device;
  if (const CUresult trouble = device_failure(device); trouble != CUDA_SUCCESS) return trouble;
  total = device.total_bytes;
  free = free_bytes(device);
  return CUDA_SUCCESS;
}

CUresult free_memory(uint64_t address) {
  if (address == 0) return CUDA_SUCCESS;
  if (const CUresult result = refuse_while_capturing(); result != CUDA_SUCCESS) return result;
  if (free_graph_memory(address)) return CUDA_SUCCESS;
  Block* block = block_at(address);
  if (block == nullptr || block->address != address) return CUDA_ERROR_INVALID_VALUE;
  if (block->space != Space::Device && block->space != Space::Managed &&
      block->space != Space::Pooled && !is_pool_import(*block))
    return CUDA_ERROR_INVALID_VALUE;
  if (driver.sticky != CUDA_SUCCESS) return driver.sticky;
  drop_pooled(*block);
  return CUDA_SUCCESS;
}

unsigned clamp(uint64_t value) {
  return value > UINT_MAX ? UINT_MAX : static_cast<unsigned>(value);
}

CUresult advice_target(CUdeviceptr dev_ptr, size_t count) {
  if (count == 0 || !reachable(dev_ptr, count)) return CUDA_ERROR_INVALID_VALUE;
  return block_at(dev_ptr)->space == Space::Managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

namespace entry {

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  uint64_t left = 0;
  uint64_t all = 0;
  const CUresult result = memory_information(left, all);
  if (result != CUDA_SUCCESS) return result;
  if (free != nullptr) *free = left;
  if (total != nullptr) *total = all;
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  uint64_t left = 0;
  uint64_t all = 0;
  const CUresult result = memory_information(left, all);
  if (result != CUDA_SUCCESS) return result;
  if (free != nullptr) *free = clamp(left);
  if (total != nullptr) *total = clamp(all);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  const CUresult result = allocate_here(bytes, Reach::Anywhere, address);
  if (result == CUDA_SUCCESS) *pointer = address;
  return result;
}
CUresult cuMemAlloc(CUdeviceptr_v1* pointer, unsigned int bytes) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  const CUresult result = allocate_here(bytes, Reach::Below4GiB, address);
  if (result == CUDA_SUCCESS) *pointer = static_cast<CUdeviceptr_v1>(address);
  return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width_in_bytes,
                            size_t height, unsigned int element_size_bytes) {
  if (pointer == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  uint64_t row = 0;
  const CUresult result =
      pitched(width_in_bytes, height, element_size_bytes, Reach::Anywhere, address, row);
  if (result != CUDA_SUCCESS) return result;
  *pointer = address;
  *pitch = row;
  return CUDA_SUCCESS;
}
CUresult cuMemAllocPitch(CUdeviceptr_v1* pointer, unsigned int* pitch, unsigned int width_in_bytes,
                         unsigned int height, unsigned int element_size_bytes) {
  if (pointer == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  uint64_t row = 0;
  const CUresult result =
      pitched(width_in_bytes, height, element_size_bytes, Reach::Below4GiB, address, row);
  if (result != CUDA_SUCCESS) return result;
  *pointer = static_cast<CUdeviceptr_v1>(address);
  *pitch = static_cast<unsigned int>(row);
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return free_memory(pointer);
}
CUresult cuMemFree(CUdeviceptr_v1 pointer) {
  return free_memory(pointer);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
  const Block* block = block_at(pointer);
  if (block == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = block->address;
  if (size != nullptr) *size = block->size;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr_v1* base, unsigned int* size, CUdeviceptr_v1 pointer) {
  const Block* block = block_at(pointer);
  if (block == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = static_cast<CUdeviceptr_v1>(block->address);
  if (size != nullptr) *size = clamp(block->size);
  return CUDA_SUCCESS;
}

// Charged in full: the location of the pages is not simulated.
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_while_capturing(); result != CUDA_SUCCESS) return result;
  const uint64_t size = round_up(bytes, kGranule);
  if (size < bytes || bytes > context->device->total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult result = charge(*context->device, size); result != CUDA_SUCCESS) return result;
  Block wanted{};
  wanted.data = map_memory(bytes);
  wanted.address = reinterpret_cast<uint64_t>(wanted.data);
  wanted.size = bytes;
  wanted.space = Space::Managed;
  wanted.charged = size;
  wanted.context = context;
  wanted.device = context->device;
  Block* block = wanted.data == nullptr ? nullptr : add_block(wanted);
  if (block == nullptr) {
    unmap_memory(wanted.data, bytes);
    uncharge(*context->device, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = block->address;
  return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr dev_ptr, size_t count, CUmem_advise, CUdevice) {
  return advice_target(dev_ptr, count);
}
CUresult cuMemAdvise_v2(CUdeviceptr dev_ptr, size_t count, CUmem_advise, CUmemLocation) {
  return advice_target(dev_ptr, count);
}

CUresult cuMemPrefetchAsync(CUdeviceptr dev_ptr, size_t count, CUdevice dst_device,
                            CUstream stream) {
  Stream* in = nullptr;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  if (dst_device != CU_DEVICE_CPU && device_at(dst_device) == nullptr)
    return CUDA_ERROR_INVALID_DEVICE;
  return advice_target(dev_ptr, count);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr dev_ptr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream stream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return entry::cuMemPrefetchAsync(dev_ptr, count, on_device ? location.id : CU_DEVICE_CPU, stream);
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr dptr, size_t, unsigned int) {
  Stream* in = nullptr;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  const Block* block = block_at(dptr);
  return block != nullptr && block->space == Space::Managed ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
