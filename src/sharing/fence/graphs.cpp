// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/graphs.hpp"

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/handle_table.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/pools.hpp"
#include "sharing/fence/reclaim.hpp"

namespace gantry::fence {
namespace {

struct Graphs {
  uint32_t any;  // some graph of this process allocates
  HandleTable
      execs;  // by handle: Entry.bytes needed; Entry.other 1: frees by itself; Entry.count runs
  uint64_t charged[FENCE_MAX_GPUS];
};
constinit Graphs graphs{};

bool read_graph_memory(uint32_t gpu, CUgraphMem_attribute what, uint64_t& value) {
  const CUdevice device = device_of(gpu);
  return device != CU_DEVICE_INVALID &&
         real().cuDeviceGetGraphMemAttribute(device, what, &value) == CUDA_SUCCESS;
}

// True if it is less than before.
bool settle_graph_memory(uint32_t gpu) {
  uint64_t reserved = 0;
  if (gpu >= FENCE_MAX_GPUS ||
      !read_graph_memory(gpu, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, reserved))
    return false;
  const uint64_t before = graphs.charged[gpu];
  graphs.charged[gpu] = reserved;
  if (reserved > before) charge_unconditionally(gpu, reserved - before);
  if (reserved < before) release_reserved(gpu, before - reserved);
  return reserved < before;
}

// A launch cannot be undone, so the memory that it may need must fit before. A graph that frees its
// memory at its next launch needs it only once.
uint64_t growth_of(const Entry& exec) {
  uint64_t used = 0;
  if (!read_graph_memory(exec.gpu, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, used)) return 0;
  const bool again = exec.other != 0 && exec.count != 0;
  const uint64_t needed =
      round_up(again ? (used > exec.bytes ? used : exec.bytes) : used + exec.bytes, kPoolStep);
  const uint64_t now = graphs.charged[exec.gpu];
  return needed > now ? needed - now : 0;
}

CUresult note(CUresult result, const CUgraphExec* exec, CUgraph graph, uint64_t flags) {
  if (result != CUDA_SUCCESS || !attached() || exec == nullptr) return result;
  const GraphFootprint needed = footprint_of(graph);
  if (needed.bytes == 0 || needed.gpu == kNoGpu) return result;
  __atomic_store_n(&graphs.any, 1, __ATOMIC_RELEASE);
  graphs.execs.put(
      {.key = key_of(*exec),
       .bytes = needed.bytes,
       .other = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0 ? 1U : 0U,
       .context = nullptr,
       .gpu = needed.gpu,
       .count = 0});
  settle_graphs(needed.gpu);
  return result;
}

}  // namespace

CUresult launch_graph(CUgraphExec exec, CUstream stream, GraphCall call) {
  Entry known{};
  if (__builtin_expect(__atomic_load_n(&graphs.any, __ATOMIC_ACQUIRE) == 0, 1) ||
      !graphs.execs.find(key_of(exec), known))
    return call(exec, stream);
  const SettleLock guard;
  const uint64_t growth = growth_of(known);
  MemoryCall underway;
  if (!reserve(known.gpu, growth, underway)) return refused(known.gpu, growth);
  graphs.charged[known.gpu] += growth;
  const CUresult result = call(exec, stream);
  graphs.execs.update(key_of(exec), [](Entry& entry) { entry.count = 1; });
  settle_graph_memory(known.gpu);
  return result;
}

void settle_graphs(uint32_t gpu) {
  if (__atomic_load_n(&graphs.any, __ATOMIC_ACQUIRE) == 0) return;
  const SettleLock guard;
  settle_graph_memory(gpu);
}

bool reclaim_graphs(uint32_t gpu) {
  if (__atomic_load_n(&graphs.any, __ATOMIC_ACQUIRE) == 0) return false;
  const SettleLock guard;
  const CUdevice device = device_of(gpu);
  if (device == CU_DEVICE_INVALID) return false;
  MemoryCall underway;
  underway.begin(gpu);
  real().cuDeviceGraphMemTrim(device);
  return settle_graph_memory(gpu);
}

void reset_graphs_after_fork() {
  graphs.any = 0;
  graphs.execs.forget();
  for (uint64_t& each : graphs.charged) each = 0;
}

}  // namespace gantry::fence

using namespace gantry::fence;

CUresult cuGraphInstantiate(CUgraphExec* graph_exec, CUgraph graph, CUgraphNode* error_node,
                            char* log_buffer, size_t buffer_size) {
  return note(real().cuGraphInstantiate(graph_exec, graph, error_node, log_buffer, buffer_size),
              graph_exec, graph, 0);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* graph_exec, CUgraph graph, CUgraphNode* error_node,
                               char* log_buffer, size_t buffer_size) {
  return note(real().cuGraphInstantiate_v2(graph_exec, graph, error_node, log_buffer, buffer_size),
              graph_exec, graph, 0);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* graph_exec, CUgraph graph,
                                     unsigned long long flags) {
  return note(real().cuGraphInstantiateWithFlags(graph_exec, graph, flags), graph_exec, graph,
              flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* graph_exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params) {
  const uint64_t flags = instantiate_params == nullptr ? 0 : instantiate_params->flags;
  return note(real().cuGraphInstantiateWithParams(graph_exec, graph, instantiate_params),
              graph_exec, graph, flags);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* graph_exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params) {
  const uint64_t flags = instantiate_params == nullptr ? 0 : instantiate_params->flags;
  return note(real().cuGraphInstantiateWithParams_ptsz(graph_exec, graph, instantiate_params),
              graph_exec, graph, flags);
}

CUresult cuGraphExecDestroy(CUgraphExec graph_exec) {
  Entry known{};
  const bool ours = graphs.execs.take(key_of(graph_exec), known);
  const CUresult result = real().cuGraphExecDestroy(graph_exec);
  if (ours && result != CUDA_SUCCESS) graphs.execs.put(known);
  if (ours) settle_graphs(known.gpu);
  return result;
}

CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
  return launch_graph(graph, stream, real().cuGraphUpload);
}
CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
  return launch_graph(graph, stream, real().cuGraphUpload_ptsz);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult result = real().cuDeviceGraphMemTrim(device);
  settle_graphs(gpu_of(device));
  return result;
}
