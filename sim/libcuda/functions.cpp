// SPDX-License-Identifier: Apache-2.0
// Entry points that query a kernel: attributes and occupancy.
#include "sim/libcuda/attributes.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"

namespace gantry::sim::cuda {
namespace {

constexpr int kRegisters = 12;  // of a small kernel; nothing here compiles one

CUresult function_attribute(const Function* function, const Device& device,
                            CUfunction_attribute which, int* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const int capability = static_cast<int>(device.card->cc_major * 10 + device.card->cc_minor);
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = kRegisters; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = function->module->opaque ? capability : function->module->ptx_target;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = capability; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(Function* function, const Device& device, CUfunction_attribute which,
                       int value) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > generation_of(device).shared_optin) return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_shared = value;
    return CUDA_SUCCESS;
  }
  if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    function->carveout = value;
    return CUDA_SUCCESS;
  }
  const bool cluster = which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED ||
                       which == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  return cluster ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int smaller(int one, int other) {
  return one < other ? one : other;
}

// Blocks that fit on a multiprocessor: by threads in whole warps, by number, registers and shared
// memory.
int blocks_that_fit(const Device& device, int block_size, size_t shared_bytes) {
  const Generation& generation = generation_of(device);
  if (block_size <= 0 || block_size > 1024) return 0;
  const int warps = (block_size + 31) / 32;
  int blocks = smaller(generation.blocks_per_multiprocessor,
                       generation.threads_per_multiprocessor / (warps * 32));
  const int registers = 16 * 32 * warps;  // given out in steps of 16 a thread
  blocks = smaller(blocks, generation.registers_per_multiprocessor / registers);
  const size_t reserved = device.card->cc_major >= 8 ? 1024 : 0;
  if (shared_bytes + reserved > 0) {
    const auto room = static_cast<size_t>(generation.shared_per_multiprocessor);
    const size_t by_shared = room / (shared_bytes + reserved);
    if (by_shared < static_cast<size_t>(blocks)) blocks = static_cast<int>(by_shared);
  }
  return blocks;
}

CUresult occupancy_of(int* blocks, CUfunction func, int block_size, size_t shared_bytes) {
  const Context* context = current();
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (find<Function>(func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *blocks = blocks_that_fit(*context->device, block_size, shared_bytes);
  return CUDA_SUCCESS;
}

// The largest block that keeps the most threads busy.
CUresult best_block(int* min_grid_size, int* block_size, CUfunction func,
                    CUoccupancyB2DSize shared_of, size_t shared_bytes, int limit) {
  const Context* context = current();
  if (min_grid_size == nullptr || block_size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (find<Function>(func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Device& device = *context->device;
  int best_threads = 0;
  for (int size = limit > 0 && limit < 1024 ? limit : 1024; size > 0;
       size -= size % 32 == 0 ? 32 : size % 32) {
    size_t shared = shared_bytes;
    if (shared_of != nullptr) {
      const DriverUnlock unlocked;
      shared = shared_of(size);
    }
    const int blocks = blocks_that_fit(device, size, shared);
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block_size = size;
    *min_grid_size = blocks * static_cast<int>(device.multiprocessors);
  }
  return best_threads == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  const Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return function_attribute(find<Function>(function), *context->device, which, value);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  const Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return set_attribute(find<Function>(function), *context->device, which, value);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  Function* known = find<Function>(function);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  known->cache = config;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return find<Function>(function) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  const Function* known = find<Function>(function);
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = handle_of<CUmodule>(known->module);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  const Function* known = find<Function>(function);
  if (name == nullptr || known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = known->name;
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (state == nullptr || find<Function>(function) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  return find<Function>(function) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel function) {
  const Function* known = find<Function>(function);
  if (name == nullptr || known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = known->name;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute which, CUkernel kernel,
                              CUdevice dev) {
  const Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return function_attribute(find<Function>(kernel), *device, which, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int val, CUkernel kernel, CUdevice dev) {
  const Device* device = device_at(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return set_attribute(find<Function>(kernel), *device, which, val);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  Function* known = find<Function>(kernel);
  if (device_at(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  known->cache = config;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, CUfunction func,
                                                     int block_size, size_t dynamic_smem_size) {
  return occupancy_of(num_blocks, func, block_size, dynamic_smem_size);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* num_blocks, CUfunction func,
                                                              int block_size,
                                                              size_t dynamic_smem_size,
                                                              unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return occupancy_of(num_blocks, func, block_size, dynamic_smem_size);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, CUfunction func,
                                          CUoccupancyB2DSize block_size_to_dynamic_smem_size,
                                          size_t dynamic_smem_size, int block_size_limit) {
  return best_block(min_grid_size, block_size, func, block_size_to_dynamic_smem_size,
                    dynamic_smem_size, block_size_limit);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
    int* min_grid_size, int* block_size, CUfunction func,
    CUoccupancyB2DSize block_size_to_dynamic_smem_size, size_t dynamic_smem_size,
    int block_size_limit, unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return best_block(min_grid_size, block_size, func, block_size_to_dynamic_smem_size,
                    dynamic_smem_size, block_size_limit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamic_smem_size, CUfunction func,
                                                 int num_blocks, int block_size) {
  const Context* context = current();
  if (dynamic_smem_size == nullptr || num_blocks <= 0 || block_size <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (find<Function>(func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Generation& generation = generation_of(*context->device);
  const size_t reserved = context->device->card->cc_major >= 8 ? 1024 : 0;
  const size_t each = static_cast<size_t>(generation.shared_per_multiprocessor / num_blocks);
  const auto most = static_cast<size_t>(generation.shared_optin);
  const size_t left = each > reserved ? each - reserved : 0;
  *dynamic_smem_size = left < most ? left : most;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
