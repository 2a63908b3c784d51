// SPDX-License-Identifier: Apache-2.0
// Runs a graph: the work of all nodes is done at once; the times of branches overlap.
#include "sim/libcuda/clock.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/graph.hpp"
#include "sim/libcuda/transfer.hpp"

#include <stdlib.h>

namespace gantry::sim::cuda {
namespace {

// All times count from the graph's beginning.
struct Run {
  Stream& stream;
  uint64_t passed_ns;  // already in the stream, because host functions of the program waited for it
};

CUresult run_nodes(Node* const* order, uint32_t count, Run& run, uint64_t start_ns,
                   uint64_t& end_ns);

CUresult run_child(const Graph& child, Run& run, uint64_t start_ns, uint64_t& end_ns) {
  Node** order = order_of(child);
  if (order == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = run_nodes(order, child.count, run, start_ns, end_ns);
  free(order);
  return result;
}

CUresult run_node(Node& node, Run& run, uint64_t start_ns) {
  const Device& device = *run.stream.context->device;
  uint64_t duration_ns = 0;
  CUresult result = CUDA_SUCCESS;
  node.end_ns = start_ns;
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      if (!is_live(node.function, Kind::Function)) return CUDA_ERROR_INVALID_HANDLE;
      const Launch work = {node.function->name, threads_in(node.shape), nullptr,
                           node.arguments.data, node.arguments.size};
      result = execute(device, node.shape, work, duration_ns);
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: result = copy_now(node.copy, device, duration_ns); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: result = fill_now(node.fill, device, duration_ns); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: return run_child(*node.child, run, start_ns, node.end_ns);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: result = take_graph_memory(node.alloc.dptr); break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: free_graph_memory(node.freed); break;
    default: break;
  }
  node.end_ns = start_ns + duration_ns;
  return result;
}

// Host functions of the program run at their time, on the calling thread.
void call_host(const Node& node, Run& run, uint64_t from_ns) {
  const CUDA_HOST_NODE_PARAMS host = node.host;
  if (from_ns > run.passed_ns) {
    enqueue(run.stream, from_ns - run.passed_ns);
    run.passed_ns = from_ns;
  }
  wait_until(*run.stream.context->device, run.stream.ready_ns);
  const DriverUnlock unlocked;
  host.fn(host.userData);
}

CUresult run_nodes(Node* const* order, uint32_t count, Run& run, uint64_t start_ns,
                   uint64_t& end_ns) {
  end_ns = start_ns;
  for (uint32_t i = 0; i < count; ++i) {
    Node& node = *order[i];
    uint64_t start = start_ns;
    for (uint32_t k = 0; k < node.need_count; ++k) start = later(start, node.needs[k]->end_ns);
    node.end_ns = start;
    if (node.disabled) continue;
    if (node.type == CU_GRAPH_NODE_TYPE_HOST) call_host(node, run, start);
    if (const CUresult result = run_node(node, run, start); result != CUDA_SUCCESS) return result;
    end_ns = later(end_ns, node.end_ns);
  }
  return CUDA_SUCCESS;
}

// Events of the graph get their times when the start of the graph is known.
void record_events(const Graph& graph, const Stream& stream, uint64_t total_ns) {
  for (uint32_t i = 0; i < graph.count; ++i) {
    const Node& node = *graph.nodes[i];
    Event* event = node.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? find<Event>(node.event) : nullptr;
    if (event == nullptr) continue;
    event->recorded = true;
    event->when_ns = stream.ready_ns - (total_ns - node.end_ns);
  }
}

void wait_for_events(const Graph& graph, Stream& stream) {
  for (uint32_t i = 0; i < graph.count; ++i) {
    const Node& node = *graph.nodes[i];
    if (node.type != CU_GRAPH_NODE_TYPE_WAIT_EVENT) continue;
    const Event* event = find<Event>(node.event);
    if (event != nullptr && event->recorded)
      stream.ready_ns = later(stream.ready_ns, event->when_ns);
  }
}

}  // namespace

CUresult run_graph(GraphExec& exec, Stream& stream) {
  const Graph& graph = *exec.graph;
  const bool frees = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (uint32_t i = 0; i < graph.count; ++i) {
    const Node& node = *graph.nodes[i];
    if (node.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !is_graph_memory_live(node.alloc.dptr))
      continue;
    if (!frees) return CUDA_ERROR_INVALID_VALUE;
    free_graph_memory(node.alloc.dptr);
  }
  wait_for_events(graph, stream);
  enqueue(stream, 0);
  uint64_t total_ns = 0;
  Run run = {stream, 0};
  const CUresult result = run_nodes(exec.order, graph.count, run, 0, total_ns);
  if (total_ns > run.passed_ns) enqueue(stream, total_ns - run.passed_ns);
  if (result == CUDA_SUCCESS) record_events(graph, stream, total_ns);
  return result;
}

}  // namespace gantry::sim::cuda
