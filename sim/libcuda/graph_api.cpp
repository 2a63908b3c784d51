// SPDX-License-Identifier: Apache-2.0
// Entry points that build and query graphs.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/graph.hpp"
#include "sim/libcuda/memory.hpp"

#include <string.h>

namespace gantry::sim::cuda {
namespace {

// Adds a node to the program's graph, after nodes of the same graph.
CUresult add(CUgraph graph, CUgraphNodeType type, const CUgraphNode* needs, size_t count,
             Node*& node) {
  Graph* known = find<Graph>(graph);
  if (known == nullptr || (needs == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const Node* need = find<Node>(needs[i]);
    if (need == nullptr || need->graph != known) return CUDA_ERROR_INVALID_VALUE;
  }
  node = add_node(*known, type, reinterpret_cast<Node* const*>(needs), count);
  return node == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// Returns the finished node, or removes it on an error.
CUresult finish(Node* node, CUresult result, CUgraphNode* out) {
  if (result == CUDA_SUCCESS) {
    *out = handle_of<CUgraphNode>(node);
  } else if (node != nullptr) {
    end_node(*node);
  }
  return result;
}

Node* node_of(CUgraphNode handle, CUgraphNodeType type) {
  Node* node = find<Node>(handle);
  return node != nullptr && node->type == type ? node : nullptr;
}

// Nodes whose parameters are one value of the node: `field` of those of this type.
template <class Params>
CUresult add_plain(CUgraphNode* out, CUgraph graph, CUgraphNodeType type,
                   const CUgraphNode* dependencies, size_t count, Params Node::*field,
                   const Params* params) {
  if (out == nullptr || !is_complete(params)) return CUDA_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  const CUresult result = add(graph, type, dependencies, count, node);
  if (result == CUDA_SUCCESS) node->*field = *params;
  return finish(node, result, out);
}

template <class Params>
CUresult read_plain(CUgraphNode handle, CUgraphNodeType type, Params Node::*field, Params* out) {
  const Node* node = node_of(handle, type);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->*field;
  return CUDA_SUCCESS;
}

template <class Params>
CUresult write_plain(CUgraphNode handle, CUgraphNodeType type, Params Node::*field,
                     const Params* params) {
  Node* node = node_of(handle, type);
  if (node == nullptr || !is_complete(params)) return CUDA_ERROR_INVALID_VALUE;
  node->*field = *params;
  return CUDA_SUCCESS;
}

CUresult read_kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS& out) {
  const Node* node = node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  out = {};
  out.func = handle_of<CUfunction>(node->function);
  out.gridDimX = node->shape.grid[0];
  out.gridDimY = node->shape.grid[1];
  out.gridDimZ = node->shape.grid[2];
  out.blockDimX = node->shape.block[0];
  out.blockDimY = node->shape.block[1];
  out.blockDimZ = node->shape.block[2];
  out.sharedMemBytes = node->shape.shared_bytes;
  out.kernelParams = node->pointers;
  return CUDA_SUCCESS;
}

// The usual form of a list: only the count, or as many as fit, with the rest cleared.
struct List {
  CUgraphNode* out;
  CUgraphNode* other;  // of an edge: its end
  size_t room, count;
  void put(Node* node, Node* second = nullptr) {
    if (out != nullptr && count < room) {
      out[count] = handle_of<CUgraphNode>(node);
      if (other != nullptr) other[count] = handle_of<CUgraphNode>(second);
    }
    ++count;
  }
  CUresult finish(size_t* number) {
    for (size_t i = count; out != nullptr && i < room; ++i) out[i] = nullptr;
    *number = out != nullptr && count > room ? room : count;
    return CUDA_SUCCESS;
  }
};

void no_edge_data(CUgraphEdgeData* data, size_t count) {
  if (data != nullptr) memset(data, 0, count * sizeof *data);
}

CUresult list_edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* number) {
  const Graph* known = find<Graph>(graph);
  if (known == nullptr || number == nullptr || (from == nullptr) != (to == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  List list = {from, to, *number, 0};
  for (uint32_t i = 0; i < known->count; ++i) {
    Node* node = known->nodes[i];
    for (uint32_t k = 0; k < node->need_count; ++k) list.put(node->needs[k], node);
  }
  return list.finish(number);
}

CUresult list_needs(CUgraphNode handle, CUgraphNode* out, size_t* number) {
  const Node* node = find<Node>(handle);
  if (node == nullptr || number == nullptr) return CUDA_ERROR_INVALID_VALUE;
  List list = {out, nullptr, *number, 0};
  for (uint32_t i = 0; i < node->need_count; ++i) list.put(node->needs[i]);
  return list.finish(number);
}

CUresult list_dependents(CUgraphNode handle, CUgraphNode* out, size_t* number) {
  const Node* node = find<Node>(handle);
  if (node == nullptr || number == nullptr) return CUDA_ERROR_INVALID_VALUE;
  List list = {out, nullptr, *number, 0};
  for (uint32_t i = 0; i < node->graph->count; ++i) {
    Node* other = node->graph->nodes[i];
    for (uint32_t k = 0; k < other->need_count; ++k) {
      if (other->needs[k] == node) list.put(other);
    }
  }
  return list.finish(number);
}

enum class Edge : uint8_t { Add, Remove };

CUresult change_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      Edge what) {
  const Graph* known = find<Graph>(graph);
  if (known == nullptr || (count != 0 && (from == nullptr || to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Node* need = find<Node>(from[i]);
    Node* node = find<Node>(to[i]);
    if (need == nullptr || node == nullptr || need == node || need->graph != known ||
        node->graph != known)
      return CUDA_ERROR_INVALID_VALUE;
    if (what == Edge::Remove) {
      if (!remove_need(*node, need)) return CUDA_ERROR_INVALID_VALUE;
    } else if (!add_need(*node, need)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  return CUDA_SUCCESS;
}

CUresult add_of_type(CUgraphNode* out, CUgraph graph, const CUgraphNode* needs, size_t count,
                     CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return entry::cuGraphAddKernelNode_v2(out, graph, needs, count, &params.of.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return entry::cuGraphAddMemcpyNode(out, graph, needs, count, &params.of.memcpy.copyParams,
                                         params.of.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return entry::cuGraphAddMemsetNode(out, graph, needs, count, &params.of.memset, nullptr);
    case CU_GRAPH_NODE_TYPE_HOST:
      return entry::cuGraphAddHostNode(out, graph, needs, count, &params.of.host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return entry::cuGraphAddChildGraphNode(out, graph, needs, count, params.of.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY: return entry::cuGraphAddEmptyNode(out, graph, needs, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return entry::cuGraphAddEventWaitNode(out, graph, needs, count, params.of.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return entry::cuGraphAddEventRecordNode(out, graph, needs, count,
                                              params.of.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return entry::cuGraphAddMemAllocNode(out, graph, needs, count, &params.of.alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return entry::cuGraphAddMemFreeNode(out, graph, needs, count, params.of.free.dptr);
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult add_event_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* needs, size_t count,
                        CUevent event, CUgraphNodeType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find<Event>(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Node* node = nullptr;
  const CUresult result = add(graph, type, needs, count, node);
  if (result == CUDA_SUCCESS) node->event = event;
  return finish(node, result, out);
}

}  // namespace

namespace entry {

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Graph* made = make_graph(false);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *graph = handle_of<CUgraph>(made);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  Graph* known = find<Graph>(graph);
  if (known == nullptr || known->inner) return CUDA_ERROR_INVALID_VALUE;
  end_graph(*known);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* graph_clone, CUgraph original_graph) {
  const Graph* known = find<Graph>(original_graph);
  if (graph_clone == nullptr || known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(*known)) return CUDA_ERROR_NOT_SUPPORTED;
  Graph* copy = copy_graph(*known);
  if (copy == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  copy->inner = false;
  *graph_clone = handle_of<CUgraph>(copy);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original_node,
                                CUgraph cloned_graph) {
  const Node* original = find<Node>(original_node);
  const Graph* graph = find<Graph>(cloned_graph);
  if (node == nullptr || original == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *node = handle_of<CUgraphNode>(node_with(*graph, original->id));
  return *node == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* graph_node, CUgraph graph,
                                 const CUgraphNode* dependencies, size_t num_dependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* node_params) {
  if (graph_node == nullptr || node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  CUresult result = add(graph, CU_GRAPH_NODE_TYPE_KERNEL, dependencies, num_dependencies, node);
  if (result == CUDA_SUCCESS) result = set_kernel(*node, *node_params);
  return finish(node, result, graph_node);
}
CUresult cuGraphAddKernelNode(CUgraphNode* graph_node, CUgraph graph,
                              const CUgraphNode* dependencies, size_t num_dependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* node_params) {
  if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS params = newer(*node_params);
  return entry::cuGraphAddKernelNode_v2(graph_node, graph, dependencies, num_dependencies, &params);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* node_params) {
  return node_params == nullptr ? CUDA_ERROR_INVALID_VALUE : read_kernel(node, *node_params);
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* node_params) {
  if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS params{};
  const CUresult result = read_kernel(node, params);
  if (result == CUDA_SUCCESS) memcpy(node_params, &params, sizeof *node_params);
  return result;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS* node_params) {
  Node* known = node_of(node, CU_GRAPH_NODE_TYPE_KERNEL);
  if (known == nullptr || node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_kernel(*known, *node_params);
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* node_params) {
  if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS params = newer(*node_params);
  return entry::cuGraphKernelNodeSetParams_v2(node, &params);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* graph_node, CUgraph graph,
                              const CUgraphNode* dependencies, size_t num_dependencies,
                              const CUDA_MEMCPY3D* copy_params, CUcontext) {
  return add_plain(graph_node, graph, CU_GRAPH_NODE_TYPE_MEMCPY, dependencies, num_dependencies,
                   &Node::copy, copy_params);
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* node_params) {
  return read_plain(node, CU_GRAPH_NODE_TYPE_MEMCPY, &Node::copy, node_params);
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* node_params) {
  return write_plain(node, CU_GRAPH_NODE_TYPE_MEMCPY, &Node::copy, node_params);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* graph_node, CUgraph graph,
                              const CUgraphNode* dependencies, size_t num_dependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memset_params, CUcontext) {
  return add_plain(graph_node, graph, CU_GRAPH_NODE_TYPE_MEMSET, dependencies, num_dependencies,
                   &Node::fill, memset_params);
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* node_params) {
  return read_plain(node, CU_GRAPH_NODE_TYPE_MEMSET, &Node::fill, node_params);
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* node_params) {
  return write_plain(node, CU_GRAPH_NODE_TYPE_MEMSET, &Node::fill, node_params);
}

CUresult cuGraphAddHostNode(CUgraphNode* graph_node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t num_dependencies, const CUDA_HOST_NODE_PARAMS* node_params) {
  return add_plain(graph_node, graph, CU_GRAPH_NODE_TYPE_HOST, dependencies, num_dependencies,
                   &Node::host, node_params);
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* node_params) {
  return read_plain(node, CU_GRAPH_NODE_TYPE_HOST, &Node::host, node_params);
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* node_params) {
  return write_plain(node, CU_GRAPH_NODE_TYPE_HOST, &Node::host, node_params);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* graph_node, CUgraph graph,
                                  const CUgraphNode* dependencies, size_t num_dependencies,
                                  CUgraph child_graph) {
  const Graph* child = find<Graph>(child_graph);
  if (graph_node == nullptr || child == nullptr || graph == child_graph)
    return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(*child)) return CUDA_ERROR_NOT_SUPPORTED;
  Node* node = nullptr;
  CUresult result = add(graph, CU_GRAPH_NODE_TYPE_GRAPH, dependencies, num_dependencies, node);
  if (result == CUDA_SUCCESS) {
    node->child = copy_graph(*child);
    if (node->child == nullptr) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  return finish(node, result, graph_node);
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  const Node* known = node_of(node, CU_GRAPH_NODE_TYPE_GRAPH);
  if (known == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = handle_of<CUgraph>(known->child);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode* graph_node, CUgraph graph,
                             const CUgraphNode* dependencies, size_t num_dependencies) {
  if (graph_node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  const CUresult result =
      add(graph, CU_GRAPH_NODE_TYPE_EMPTY, dependencies, num_dependencies, node);
  return finish(node, result, graph_node);
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* graph_node, CUgraph graph,
                                   const CUgraphNode* dependencies, size_t num_dependencies,
                                   CUevent event) {
  return add_event_node(graph_node, graph, dependencies, num_dependencies, event,
                        CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* graph_node, CUgraph graph,
                                 const CUgraphNode* dependencies, size_t num_dependencies,
                                 CUevent event) {
  return add_event_node(graph_node, graph, dependencies, num_dependencies, event,
                        CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* graph_node, CUgraph graph,
                                const CUgraphNode* dependencies, size_t num_dependencies,
                                CUDA_MEM_ALLOC_NODE_PARAMS* node_params) {
  if (graph_node == nullptr || node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  CUresult result = add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, dependencies, num_dependencies, node);
  if (result == CUDA_SUCCESS) result = reserve_for(*node, *node_params);
  return finish(node, result, graph_node);
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  const Node* known = node_of(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  if (known == nullptr || params_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params_out = known->alloc;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* graph_node, CUgraph graph,
                               const CUgraphNode* dependencies, size_t num_dependencies,
                               CUdeviceptr pointer) {
  const Block* block = block_at(pointer);
  if (graph_node == nullptr || block == nullptr || block->space != Space::Graph)
    return CUDA_ERROR_INVALID_VALUE;
  Node* node = nullptr;
  const CUresult result =
      add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, dependencies, num_dependencies, node);
  if (result == CUDA_SUCCESS) node->freed = pointer;
  return finish(node, result, graph_node);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* dptr_out) {
  const Node* known = node_of(node, CU_GRAPH_NODE_TYPE_MEM_FREE);
  if (known == nullptr || dptr_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *dptr_out = known->freed;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode* graph_node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t num_dependencies, CUgraphNodeParams* node_params) {
  if (graph_node == nullptr || node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_of_type(graph_node, graph, dependencies, num_dependencies, *node_params);
}
CUresult cuGraphAddNode_v2(CUgraphNode* graph_node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t num_dependencies,
                           CUgraphNodeParams* node_params) {
  return entry::cuGraphAddNode(graph_node, graph, dependencies, num_dependencies, node_params);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const Node* known = find<Node>(node);
  if (known == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = known->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* num_nodes) {
  const Graph* known = find<Graph>(graph);
  if (known == nullptr || num_nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  List list = {nodes, nullptr, *num_nodes, 0};
  for (uint32_t i = 0; i < known->count; ++i) list.put(known->nodes[i]);
  return list.finish(num_nodes);
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* root_nodes, size_t* num_root_nodes) {
  const Graph* known = find<Graph>(graph);
  if (known == nullptr || num_root_nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  List list = {root_nodes, nullptr, *num_root_nodes, 0};
  for (uint32_t i = 0; i < known->count; ++i) {
    if (known->nodes[i]->need_count == 0) list.put(known->nodes[i]);
  }
  return list.finish(num_root_nodes);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* num_edges) {
  return list_edges(graph, from, to, num_edges);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edge_data, size_t* num_edges) {
  if (from != nullptr && num_edges != nullptr) no_edge_data(edge_data, *num_edges);
  return list_edges(graph, from, to, num_edges);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies,
                                    size_t* num_dependencies) {
  return list_needs(node, dependencies, num_dependencies);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edge_data, size_t* num_dependencies) {
  if (dependencies != nullptr && num_dependencies != nullptr)
    no_edge_data(edge_data, *num_dependencies);
  return list_needs(node, dependencies, num_dependencies);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* dependent_nodes,
                                      size_t* num_dependent_nodes) {
  return list_dependents(node, dependent_nodes, num_dependent_nodes);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* dependent_nodes,
                                         CUgraphEdgeData* edge_data, size_t* num_dependent_nodes) {
  if (dependent_nodes != nullptr && num_dependent_nodes != nullptr)
    no_edge_data(edge_data, *num_dependent_nodes);
  return list_dependents(node, dependent_nodes, num_dependent_nodes);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t num_dependencies) {
  return change_edges(graph, from, to, num_dependencies, Edge::Add);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t num_dependencies) {
  return change_edges(graph, from, to, num_dependencies, Edge::Add);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t num_dependencies) {
  return change_edges(graph, from, to, num_dependencies, Edge::Remove);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t num_dependencies) {
  return change_edges(graph, from, to, num_dependencies, Edge::Remove);
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  Node* known = find<Node>(node);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  end_node(*known);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
