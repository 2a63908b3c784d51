// SPDX-License-Identifier: Apache-2.0
// Entry points that create, change and launch executable graphs.
#include "sim/libcuda/capture.hpp"
#include "sim/libcuda/clock.hpp"
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/graph.hpp"
#include "sim/libcuda/host_work.hpp"

#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

void end_exec(GraphExec& exec) {
  end_graph(*exec.graph);
  free(exec.order);
  destroy(&exec);
}

// A graph that allocates has fixed addresses: it can be executable once at a time.
bool is_executable_already(const Graph& graph) {
  size_t cursor = 0;
  while (Object* object = next_of(nullptr, Kind::GraphExec, cursor)) {
    if (static_cast<GraphExec*>(object)->source == graph.id) return true;
  }
  return false;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, uint64_t flags) {
  constexpr uint64_t kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                              CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                              CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  const Graph* graph = find<Graph>(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(*graph) && is_executable_already(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
  auto* exec = make<GraphExec>(nullptr);
  if (exec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->graph = copy_graph(*graph);
  if (exec->graph == nullptr) {
    destroy(exec);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  exec->source = graph->id;
  exec->flags = flags;
  exec->order = order_of(*exec->graph);
  if (exec->order == nullptr) {
    end_exec(*exec);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = handle_of<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

// The node of the executable graph for a node of its source graph.
CUresult find_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, Node*& own) {
  const GraphExec* known = find<GraphExec>(exec);
  const Node* original = find<Node>(node);
  if (known == nullptr || original == nullptr || original->type != type)
    return CUDA_ERROR_INVALID_VALUE;
  own = node_with(*known->graph, original->id);
  return own == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Nodes whose parameters are one value of the node.
template <class Params>
CUresult write_exec_plain(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type,
                          Params Node::*field, const Params* params) {
  if (!is_complete(params)) return CUDA_ERROR_INVALID_VALUE;
  Node* own = nullptr;
  const CUresult result = find_node(exec, node, type, own);
  if (result == CUDA_SUCCESS) own->*field = *params;
  return result;
}

// Whether the other graph has the same structure: the same kinds of nodes in the same places.
CUgraphExecUpdateResult compare(const Graph& own, const Graph& other, Node*& culprit) {
  if (own.count != other.count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (uint32_t i = 0; i < own.count; ++i) {
    own.nodes[i]->mark = i;
    other.nodes[i]->mark = i;
  }
  for (uint32_t i = 0; i < own.count; ++i) {
    const Node& mine = *own.nodes[i];
    culprit = other.nodes[i];
    if (mine.type != culprit->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (mine.need_count != culprit->need_count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (uint32_t k = 0; k < mine.need_count; ++k) {
      if (mine.needs[k]->mark != culprit->needs[k]->mark)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    if (mine.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || mine.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  }
  culprit = nullptr;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult& why, Node*& culprit) {
  const GraphExec* known = find<GraphExec>(exec);
  const Graph* other = find<Graph>(graph);
  if (known == nullptr || other == nullptr) return CUDA_ERROR_INVALID_VALUE;
  why = compare(*known->graph, *other, culprit);
  if (why != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (uint32_t i = 0; i < other->count; ++i) {
    if (!copy_work(*known->graph->nodes[i], *other->nodes[i])) return CUDA_ERROR_OUT_OF_MEMORY;
    known->graph->nodes[i]->id = other->nodes[i]->id;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* graph_exec, CUgraph graph,
                                     unsigned long long flags) {
  return instantiate(graph_exec, graph, flags);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* graph_exec, CUgraph graph, CUgraphNode* error_node,
                               char* log_buffer, size_t buffer_size) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log_buffer != nullptr && buffer_size != 0) *log_buffer = '\0';
  return instantiate(graph_exec, graph, 0);
}
CUresult cuGraphInstantiate(CUgraphExec* graph_exec, CUgraph graph, CUgraphNode* error_node,
                            char* log_buffer, size_t buffer_size) {
  return entry::cuGraphInstantiate_v2(graph_exec, graph, error_node, log_buffer, buffer_size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* graph_exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params) {
  if (instantiate_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  instantiate_params->hErrNode_out = nullptr;
  CUresult result = instantiate(graph_exec, graph, instantiate_params->flags);
  if (result == CUDA_SUCCESS &&
      (instantiate_params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
    result = entry::cuGraphUpload(*graph_exec, instantiate_params->hUploadStream);
  instantiate_params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec graph_exec, cuuint64_t* flags) {
  const GraphExec* known = find<GraphExec>(graph_exec);
  if (known == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = known->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec graph_exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* node_params) {
  Node* own = nullptr;
  if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = find_node(graph_exec, node, CU_GRAPH_NODE_TYPE_KERNEL, own);
  return result == CUDA_SUCCESS ? set_kernel(*own, *node_params) : result;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec graph_exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* node_params) {
  if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS params = newer(*node_params);
  return entry::cuGraphExecKernelNodeSetParams_v2(graph_exec, node, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec graph_exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* copy_params, CUcontext) {
  return write_exec_plain(graph_exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, &Node::copy, copy_params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec graph_exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* memset_params, CUcontext) {
  return write_exec_plain(graph_exec, node, CU_GRAPH_NODE_TYPE_MEMSET, &Node::fill, memset_params);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec graph_exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* node_params) {
  return write_exec_plain(graph_exec, node, CU_GRAPH_NODE_TYPE_HOST, &Node::host, node_params);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec graph_exec, CUgraphNode node, unsigned int is_enabled) {
  const Node* original = find<Node>(node);
  Node* own = nullptr;
  if (original == nullptr || original->type > CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = find_node(graph_exec, node, original->type, own);
  if (result == CUDA_SUCCESS) own->disabled = is_enabled == 0;
  return result;
}
CUresult cuGraphNodeGetEnabled(CUgraphExec graph_exec, CUgraphNode node, unsigned int* is_enabled) {
  const Node* original = find<Node>(node);
  Node* own = nullptr;
  if (original == nullptr || is_enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = find_node(graph_exec, node, original->type, own);
  if (result == CUDA_SUCCESS) *is_enabled = own->disabled ? 0 : 1;
  return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec graph_exec, CUgraph graph,
                              CUgraphExecUpdateResultInfo* result_info) {
  if (result_info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* culprit = nullptr;
  *result_info = {};
  result_info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  const CUresult result = update(graph_exec, graph, result_info->result, culprit);
  result_info->errorNode = handle_of<CUgraphNode>(culprit);
  return result;
}
CUresult cuGraphExecUpdate(CUgraphExec graph_exec, CUgraph graph, CUgraphNode* error_node_out,
                           CUgraphExecUpdateResult* update_result_out) {
  if (update_result_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* culprit = nullptr;
  *update_result_out = CU_GRAPH_EXEC_UPDATE_ERROR;
  const CUresult result = update(graph_exec, graph, *update_result_out, culprit);
  if (error_node_out != nullptr) *error_node_out = handle_of<CUgraphNode>(culprit);
  return result;
}

// A simulated card needs no upload; memory nodes allocate at the launch.
CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
  Stream* in = nullptr;
  if (find<GraphExec>(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  return refuse_if_capturing(*in);
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  Stream* in = nullptr;
  GraphExec* exec = find<GraphExec>(graph);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = working_stream(stream, in); result != CUDA_SUCCESS) return result;
  bool records = false;
  if (const CUresult result = recording(*in, records); result != CUDA_SUCCESS) return result;
  if (records) {
    if (has_memory_nodes(*exec->graph)) return refuse_if_capturing(*in);
    Node* node = record_node(*in, CU_GRAPH_NODE_TYPE_GRAPH);
    if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->child = copy_graph(*exec->graph);
    return node->child == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  ++exec->running;
  wait_for_host_work(host_work_before(*in));
  const CUresult result = run_graph(*exec, *in);
  --exec->running;
  if (exec->doomed && exec->running == 0) end_exec(*exec);
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec graph_exec) {
  GraphExec* exec = find<GraphExec>(graph_exec);
  if (exec == nullptr || exec->doomed) return CUDA_ERROR_INVALID_VALUE;
  if (exec->running != 0) {
    exec->doomed = true;
  } else {
    end_exec(*exec);
  }
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
