// SPDX-License-Identifier: Apache-2.0
// Hooks of everything that gives the GPU work. Without a limit in time: one look at the flags.
#include "fence/driver.hpp"
#include "fence/gate.hpp"
#include "fence/graphs.hpp"
#include "fence/host.hpp"

namespace gantry::fence {
namespace {

CUstream legacy(CUstream stream) {
  return stream == nullptr ? CU_STREAM_LEGACY : stream;
}
CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace
}  // namespace gantry::fence

using namespace gantry::fence;

// The body of a hook. A macro and no function: without a limit `call` is then a plain jump.
#define FENCE_LAUNCHED(on, of_kind, of, call)                  \
  if (__builtin_expect(!time_limited(), 1)) return call;       \
  Launch launch = {.stream = on, .kind = of_kind, .what = of}; \
  const bool counted = gate_enter(launch);                     \
  const CUresult result = call;                                \
  if (counted) gate_left(launch, result);                      \
  return result

#define FENCE_LAUNCH_KERNEL(symbol, default_stream)                                            \
  CUresult symbol(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,       \
                  unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y, \
                  unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,    \
                  void** kernel_params, void** extra) {                                        \
    FENCE_LAUNCHED(                                                                            \
        default_stream(stream), LaunchKind::Kernel, function,                                  \
        real().symbol(function, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y,  \
                      block_dim_z, shared_mem_bytes, stream, kernel_params, extra));           \
  }
FENCE_LAUNCH_KERNEL(cuLaunchKernel, legacy)
FENCE_LAUNCH_KERNEL(cuLaunchKernel_ptsz, per_thread)

#define FENCE_LAUNCH_COOPERATIVE(symbol, default_stream)                                       \
  CUresult symbol(CUfunction function, unsigned int grid_dim_x, unsigned int grid_dim_y,       \
                  unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y, \
                  unsigned int block_dim_z, unsigned int shared_mem_bytes, CUstream stream,    \
                  void** kernel_params) {                                                      \
    FENCE_LAUNCHED(                                                                            \
        default_stream(stream), LaunchKind::Kernel, function,                                  \
        real().symbol(function, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y,  \
                      block_dim_z, shared_mem_bytes, stream, kernel_params));                  \
  }
FENCE_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, legacy)
FENCE_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, per_thread)

#define FENCE_LAUNCH_EX(symbol, default_stream)                                            \
  CUresult symbol(const CUlaunchConfig* config, CUfunction function, void** kernel_params, \
                  void** extra) {                                                          \
    if (config == nullptr) return real().symbol(config, function, kernel_params, extra);   \
    FENCE_LAUNCHED(default_stream(config->hStream), LaunchKind::Kernel, function,          \
                   real().symbol(config, function, kernel_params, extra));                 \
  }
FENCE_LAUNCH_EX(cuLaunchKernelEx, legacy)
FENCE_LAUNCH_EX(cuLaunchKernelEx_ptsz, per_thread)

// One launch for all its devices: counted on the first.
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int devices,
                                              unsigned int flags) {
  if (launches == nullptr || devices == 0)
    return real().cuLaunchCooperativeKernelMultiDevice(launches, devices, flags);
  FENCE_LAUNCHED(legacy(launches->hStream), LaunchKind::Kernel, launches->function,
                 real().cuLaunchCooperativeKernelMultiDevice(launches, devices, flags));
}

CUresult cuLaunch(CUfunction function) {
  FENCE_LAUNCHED(CU_STREAM_LEGACY, LaunchKind::Kernel, function, real().cuLaunch(function));
}
CUresult cuLaunchGrid(CUfunction function, int grid_width, int grid_height) {
  FENCE_LAUNCHED(CU_STREAM_LEGACY, LaunchKind::Kernel, function,
                 real().cuLaunchGrid(function, grid_width, grid_height));
}
CUresult cuLaunchGridAsync(CUfunction function, int grid_width, int grid_height, CUstream stream) {
  FENCE_LAUNCHED(legacy(stream), LaunchKind::Kernel, function,
                 real().cuLaunchGridAsync(function, grid_width, grid_height, stream));
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  FENCE_LAUNCHED(legacy(stream), LaunchKind::Graph, graph,
                 launch_graph(graph, stream, real().cuGraphLaunch));
}
CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  FENCE_LAUNCHED(per_thread(stream), LaunchKind::Graph, graph,
                 launch_graph(graph, stream, real().cuGraphLaunch_ptsz));
}
