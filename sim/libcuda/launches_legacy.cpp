// SPDX-License-Identifier: Apache-2.0
// Launches of CUDA 2 and 3: the function itself keeps its block's shape and its arguments until it
// is launched.
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/launches.hpp"

#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

CUresult set_argument(CUfunction handle, int offset, const void* from, unsigned bytes) {
  Function* function = find<Function>(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset < 0 || from == nullptr || static_cast<unsigned>(offset) > kMaxArgumentBytes ||
      bytes > kMaxArgumentBytes - static_cast<unsigned>(offset))
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t end = static_cast<uint64_t>(offset) + bytes;
  if (end > function->argument_room) {
    auto* grown = static_cast<char*>(realloc(function->arguments, end));
    if (grown == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(grown + function->argument_room, 0, end - function->argument_room);
    function->arguments = grown;
    function->argument_room = static_cast<uint32_t>(end);
  }
  memcpy(function->arguments + offset, from, bytes);
  return CUDA_SUCCESS;
}

CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream) {
  const Function* function = find<Function>(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (width <= 0 || height <= 0 || function->block[0] == 0) return CUDA_ERROR_INVALID_VALUE;
  if (function->argument_size > function->argument_room) return CUDA_ERROR_INVALID_VALUE;
  size_t size = function->argument_size;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, function->arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &size, CU_LAUNCH_PARAM_END};
  return entry::cuLaunchKernel(handle, static_cast<unsigned>(width), static_cast<unsigned>(height),
                               1, function->block[0], function->block[1], function->block[2],
                               function->shared_bytes, stream, nullptr,
                               size == 0 ? nullptr : extra);
}

}  // namespace

namespace entry {

CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
  Function* function = find<Function>(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (x <= 0 || y <= 0 || z <= 0 || x > 1024 || y > 1024 || z > 64) return CUDA_ERROR_INVALID_VALUE;
  function->block[0] = static_cast<unsigned>(x);
  function->block[1] = static_cast<unsigned>(y);
  function->block[2] = static_cast<unsigned>(z);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes) {
  Function* function = find<Function>(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  function->shared_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction handle, unsigned int numbytes) {
  Function* function = find<Function>(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (numbytes > kMaxArgumentBytes) return CUDA_ERROR_INVALID_VALUE;
  function->argument_size = numbytes;
  return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction handle, int offset, unsigned int value) {
  return set_argument(handle, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction handle, int offset, float value) {
  return set_argument(handle, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction handle, int offset, void* ptr, unsigned int numbytes) {
  return set_argument(handle, offset, ptr, numbytes);
}

CUresult cuLaunch(CUfunction handle) {
  return launch_grid(handle, 1, 1, nullptr);
}
CUresult cuLaunchGrid(CUfunction handle, int grid_width, int grid_height) {
  return launch_grid(handle, grid_width, grid_height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction handle, int grid_width, int grid_height, CUstream stream) {
  return launch_grid(handle, grid_width, grid_height, stream);
}

}  // namespace entry
}  // namespace gantry::sim::cuda
