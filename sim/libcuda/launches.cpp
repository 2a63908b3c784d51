// SPDX-License-Identifier: Apache-2.0
// Entry points that launch kernels.
#include "sim/libcuda/launches.hpp"

#include "sim/libcuda/attributes.hpp"
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/clock.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/host_work.hpp"

#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

bool fits_limits(const Shape& shape, const Function& function) {
  constexpr unsigned kMostBlocks[3] = {2147483647U, 65535U, 65535U};
  constexpr unsigned kMostThreads[3] = {1024U, 1024U, 64U};
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.grid[i] > kMostBlocks[i]) return false;
    if (shape.block[i] == 0 || shape.block[i] > kMostThreads[i]) return false;
    threads *= shape.block[i];
  }
  return threads <= 1024 && shape.shared_bytes <= static_cast<unsigned>(function.dynamic_shared);
}

// The list behind `extra`: pairs of a marker and a value.
bool read_extra(void** extra, Launch& launch) {
  for (int i = 0; i < 8; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_END) return launch.packed != nullptr;
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      launch.packed = static_cast<const char*>(extra[i + 1]);
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      launch.packed_size = *static_cast<const size_t*>(extra[i + 1]);
    } else {
      return false;
    }
  }
  return false;
}

CUDA_KERNEL_NODE_PARAMS node_params(CUfunction handle, const Shape& shape, void** parameters,
                                    void** extra) {
  return {handle,         shape.grid[0],  shape.grid[1],  shape.grid[2],
          shape.block[0], shape.block[1], shape.block[2], shape.shared_bytes,
          parameters,     extra,          nullptr,        nullptr};
}

CUresult launch(CUfunction handle, const Shape& shape, CUstream stream_handle, void** parameters,
                void** extra) {
  Stream* stream = nullptr;
  if (const CUresult result = working_stream(stream_handle, stream); result != CUDA_SUCCESS)
    return result;
  const Function* function = find<Function>(handle);
  if (const CUresult result = check_launch(function, *stream->context, shape);
      result != CUDA_SUCCESS)
    return result;
  if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool records = false;
  if (const CUresult result = recording(*stream, records); result != CUDA_SUCCESS) return result;
  if (records) return record_kernel(*stream, node_params(handle, shape, parameters, extra));
  wait_for_host_work(host_work_before(*stream));
  Launch work = {function->name, threads_in(shape), parameters, nullptr, 0};
  if (extra != nullptr && !read_extra(extra, work)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t duration_ns = 0;
  const CUresult result = execute(*stream->context->device, shape, work, duration_ns);
  if (result == CUDA_SUCCESS) enqueue(*stream, duration_ns);
  return result;
}

Shape shape_of(const CUDA_LAUNCH_PARAMS& one) {
  return {{one.gridDimX, one.gridDimY, one.gridDimZ},
          {one.blockDimX, one.blockDimY, one.blockDimZ},
          one.sharedMemBytes};
}

// All blocks of a cooperative launch run at once, so they must all fit.
CUresult check_cooperative(const Device& device, CUfunction function, const Shape& shape) {
  const uint64_t threads = static_cast<uint64_t>(shape.block[0]) * shape.block[1] * shape.block[2];
  if (threads == 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  int fit = 0;
  const CUresult result = entry::cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &fit, function, static_cast<int>(threads), shape.shared_bytes);
  if (result != CUDA_SUCCESS) return result;
  return blocks_in(shape) > static_cast<uint64_t>(fit) * device.multiprocessors
             ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
             : CUDA_SUCCESS;
}

}  // namespace

uint64_t threads_in(const Shape& shape) {
  return blocks_in(shape) * shape.block[0] * shape.block[1] * shape.block[2];
}

uint64_t blocks_in(const Shape& shape) {
  return static_cast<uint64_t>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
}

CUresult check_launch(const Function* function, const Context& context, const Shape& shape) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function->context != nullptr && function->context != &context)
    return CUDA_ERROR_INVALID_HANDLE;
  return fits_limits(shape, *function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult execute(const Device& device, const Shape& shape, const Launch& work,
                 uint64_t& duration_ns) {
  bool broken = false;
  const uint64_t blocks = blocks_in(shape);
  duration_ns = kernel_ns(device, {blocks, threads_in(shape) / blocks});
  const CUresult fault = run_kernel(work, broken, duration_ns);
  if (broken) return CUDA_ERROR_INVALID_VALUE;
  // The launch itself succeeded; the caller that waits for it sees the fault.
  if (fault != CUDA_SUCCESS) raise_fault(fault);
  return CUDA_SUCCESS;
}

CUresult pack(const Function& function, void** parameters, void** extra, Arguments& arguments) {
  arguments = {nullptr, 0};
  if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  Launch given = {function.name, 0, nullptr, nullptr, 0};
  if (extra != nullptr && !read_extra(extra, given)) return CUDA_ERROR_INVALID_VALUE;
  const char* layout = parameters == nullptr ? nullptr : parameters_of(function.name);
  const uint64_t most = layout == nullptr ? given.packed_size : strlen(layout) * 8;
  if (most == 0) return CUDA_SUCCESS;
  if (most > kMaxArgumentBytes) return CUDA_ERROR_INVALID_VALUE;
  arguments.data = static_cast<char*>(calloc(1, most));
  if (arguments.data == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (layout == nullptr) {
    memcpy(arguments.data, given.packed, given.packed_size);
    arguments.size = given.packed_size;
    return CUDA_SUCCESS;
  }
  for (unsigned i = 0; layout[i] != '\0'; ++i) {
    const uint64_t size = layout[i] == 'p' ? 8 : 4;
    arguments.size = (arguments.size + size - 1) / size * size;
    if (parameters[i] == nullptr) {
      free(arguments.data);
      arguments = {nullptr, 0};
      return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(arguments.data + arguments.size, parameters[i], size);
    arguments.size += size;
  }
  return CUDA_SUCCESS;
}

namespace entry {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,
                        unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y,
                        unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,
                        void** kernel_params, void** extra) {
  const Shape shape = {{grid_dim_x, grid_dim_y, grid_dim_z},
                       {block_dim_x, block_dim_y, block_dim_z},
                       shared_mem_bytes};
  return launch(function, shape, stream, kernel_params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                          void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const Shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                       {config->blockDimX, config->blockDimY, config->blockDimZ},
                       config->sharedMemBytes};
  return launch(function, shape, config->hStream, kernel_params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_dim_x,
                                   unsigned int grid_dim_y, unsigned int grid_dim_z,
                                   unsigned int block_dim_x, unsigned int block_dim_y,
                                   unsigned int block_dim_z, unsigned int shared_mem_bytes,
                                   CUstream stream, void** kernel_params) {
  Context* context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Shape shape = {{grid_dim_x, grid_dim_y, grid_dim_z},
                       {block_dim_x, block_dim_y, block_dim_z},
                       shared_mem_bytes};
  const CUresult result = check_cooperative(*context->device, function, shape);
  return result == CUDA_SUCCESS ? launch(function, shape, stream, kernel_params, nullptr) : result;
}

// One launch for each of several devices, all of the same shape: all of them or none.
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int devices,
                                              unsigned int flags) {
  constexpr unsigned int kFlags = 3;  // do not wait before, do not wait after
  if (launches == nullptr || devices == 0 || flags > kFlags ||
      devices > static_cast<unsigned int>(driver.device_count))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t seen = 0;
  for (unsigned int i = 0; i < devices; ++i) {
    const Stream* stream = find<Stream>(launches[i].hStream);
    if (stream == nullptr)
      return CUDA_ERROR_INVALID_HANDLE;  // also not allowed in the default stream
    const Device& device = *stream->context->device;
    const uint64_t bit = 1ULL << static_cast<unsigned int>(&device - driver.device);
    if ((seen & bit) != 0) return CUDA_ERROR_INVALID_DEVICE;
    seen |= bit;
    const CUresult result = check_cooperative(device, launches[i].function, shape_of(launches[i]));
    if (result != CUDA_SUCCESS) return result;
  }
  for (unsigned int i = 0; i < devices; ++i) {
    const CUDA_LAUNCH_PARAMS& one = launches[i];
    const CUresult result =
        launch(one.function, shape_of(one), one.hStream, one.kernelParams, nullptr);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
