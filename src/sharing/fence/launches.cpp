// SPDX-License-Identifier: Apache-2.0
// Hooks of everything that launches kernels.
#include "sharing/fence/gated_launch.hpp"
#include "sharing/fence/graphs.hpp"

using namespace gantry::fence;

// The body of a hook. It is a macro, not a function, so that `call` is a plain jump if there is no
// limit.
#define FENCE_LAUNCHED(on, of_kind, of, call)                     \
  if (__builtin_expect(!time_limited(), 1)) return call;          \
  Launch launch = {.stream = on, .kind = of_kind, .what = of};    \
  const LaunchEntry entry = gate_enter(launch);                   \
  if (__builtin_expect(entry != LaunchEntry::Counted, 0))         \
    return entry == LaunchEntry::Refused ? kLaunchRefused : call; \
  const CUresult result = call;                                   \
  gate_exit(launch);                                              \
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

// One launch on several GPUs, each with its own gate. The gates are entered in the caller's order,
// as if it launched on one GPU after the other.
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int devices,
                                              unsigned int flags) {
  const auto call = [&] {
    return real().cuLaunchCooperativeKernelMultiDevice(launches, devices, flags);
  };
  if (launches == nullptr || devices == 0 || devices > FENCE_MAX_GPUS || !time_limited())
    return call();
  Launch entered[FENCE_MAX_GPUS];
  LaunchEntry entries[FENCE_MAX_GPUS] = {};
  bool refused = false;
  for (unsigned int i = 0; i < devices; ++i) {
    entered[i] = {.stream = legacy(launches[i].hStream),
                  .kind = LaunchKind::Kernel,
                  .what = launches[i].function};
    entries[i] = gate_enter(entered[i]);
    refused = refused || entries[i] == LaunchEntry::Refused;
  }
  const CUresult result = refused ? kLaunchRefused : call();
  for (unsigned int i = 0; i < devices; ++i) {
    if (entries[i] == LaunchEntry::Counted) gate_exit(entered[i]);
  }
  return result;
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
