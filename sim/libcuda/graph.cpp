// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/graph.hpp"

#include "sim/libcuda/context.hpp"

#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

bool append(Node**& list, uint32_t& count, Node* node) {
  void* grown = realloc(list, (count + 1) * sizeof(Node*));
  if (grown == nullptr) return false;
  list = static_cast<Node**>(grown);
  list[count++] = node;
  return true;
}

void end_work(Node& node) {
  free(node.arguments.data);
  free(node.pointers);
  node.arguments = {nullptr, 0};
  node.pointers = nullptr;
  if (node.child != nullptr) end_graph(*node.child);
  node.child = nullptr;
  if (node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node.alloc.dptr != 0) leave_reserved(node);
}

// The places of the arguments, in the order of the kernel's parameters.
bool point_at_arguments(Node& node) {
  const char* layout = parameters_of(node.function->name);
  if (layout == nullptr || node.arguments.data == nullptr) return true;
  node.pointers = static_cast<void**>(calloc(strlen(layout) + 1, sizeof(void*)));
  if (node.pointers == nullptr) return false;
  uint64_t offset = 0;
  for (unsigned i = 0; layout[i] != '\0'; ++i) {
    const uint64_t size = layout[i] == 'p' ? 8 : 4;
    offset = (offset + size - 1) / size * size;
    if (offset + size > node.arguments.size) break;
    node.pointers[i] = node.arguments.data + offset;
    offset += size;
  }
  return true;
}

}  // namespace

Graph* make_graph(bool inner) {
  auto* graph = make<Graph>(nullptr);
  if (graph == nullptr) return nullptr;
  graph->inner = inner;
  graph->id = ++driver.next_id;
  return graph;
}

void end_node(Node& node) {
  Graph& graph = *node.graph;
  for (uint32_t i = 0; i < graph.count; ++i) remove_need(*graph.nodes[i], &node);
  for (uint32_t i = 0; i < graph.count; ++i) {
    if (graph.nodes[i] != &node) continue;
    memmove(graph.nodes + i, graph.nodes + i + 1, (graph.count - i - 1) * sizeof(Node*));
    --graph.count;
    break;
  }
  end_work(node);
  free(node.needs);
  destroy(&node);
}

void end_graph(Graph& graph) {
  for (uint32_t i = 0; i < graph.count; ++i) {
    end_work(*graph.nodes[i]);
    free(graph.nodes[i]->needs);
    destroy(graph.nodes[i]);
  }
  free(graph.nodes);
  destroy(&graph);
}

Node* add_node(Graph& graph, CUgraphNodeType type, Node* const* needs, size_t need_count) {
  auto* node = make<Node>(nullptr);
  if (node == nullptr) return nullptr;
  node->graph = &graph;
  node->type = type;
  node->id = ++driver.next_id;
  bool whole = append(graph.nodes, graph.count, node);
  if (!whole) {
    destroy(node);
    return nullptr;
  }
  for (size_t i = 0; i < need_count && whole; ++i) whole = add_need(*node, needs[i]);
  if (whole) return node;
  end_node(*node);
  return nullptr;
}

bool add_need(Node& node, Node* need) {
  for (uint32_t i = 0; i < node.need_count; ++i) {
    if (node.needs[i] == need) return true;
  }
  return append(node.needs, node.need_count, need);
}

bool remove_need(Node& node, const Node* need) {
  for (uint32_t i = 0; i < node.need_count; ++i) {
    if (node.needs[i] != need) continue;
    node.needs[i] = node.needs[--node.need_count];
    return true;
  }
  return false;
}

bool has_memory_nodes(const Graph& graph) {
  for (uint32_t i = 0; i < graph.count; ++i) {
    const Node& node = *graph.nodes[i];
    if (node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return true;
  }
  return false;
}

bool copy_work(Node& node, const Node& from) {
  end_work(node);
  node.function = from.function;
  node.shape = from.shape;
  node.copy = from.copy;
  node.fill = from.fill;
  node.host = from.host;
  node.event = from.event;
  node.alloc = from.alloc;
  node.freed = from.freed;
  if (from.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) keep_reserved(node);
  if (from.arguments.size != 0) {
    node.arguments.data = static_cast<char*>(malloc(from.arguments.size));
    if (node.arguments.data == nullptr) return false;
    memcpy(node.arguments.data, from.arguments.data, from.arguments.size);
    node.arguments.size = from.arguments.size;
    if (!point_at_arguments(node)) return false;
  }
  if (from.child != nullptr) node.child = copy_graph(*from.child);
  return from.child == nullptr || node.child != nullptr;
}

Graph* copy_graph(const Graph& graph) {
  Graph* copy = make_graph(true);
  if (copy == nullptr) return nullptr;
  bool whole = true;
  for (uint32_t i = 0; i < graph.count && whole; ++i) {
    Node* node = add_node(*copy, graph.nodes[i]->type, nullptr, 0);
    whole = node != nullptr && copy_work(*node, *graph.nodes[i]);
    if (node != nullptr) node->id = graph.nodes[i]->id;
    graph.nodes[i]->mark = i;
  }
  for (uint32_t i = 0; i < graph.count && whole; ++i) {
    for (uint32_t k = 0; k < graph.nodes[i]->need_count && whole; ++k)
      whole = add_need(*copy->nodes[i], copy->nodes[graph.nodes[i]->needs[k]->mark]);
  }
  if (whole) return copy;
  end_graph(*copy);
  return nullptr;
}

Node* node_with(const Graph& graph, uint64_t id) {
  for (uint32_t i = 0; i < graph.count; ++i) {
    if (graph.nodes[i]->id == id) return graph.nodes[i];
  }
  return nullptr;
}

Node** order_of(const Graph& graph) {
  auto** order = static_cast<Node**>(calloc(graph.count + 1, sizeof(Node*)));
  if (order == nullptr) return nullptr;
  for (uint32_t i = 0; i < graph.count; ++i) graph.nodes[i]->mark = 0;
  uint32_t placed = 0;
  for (bool more = true; more && placed < graph.count;) {
    more = false;
    for (uint32_t i = 0; i < graph.count; ++i) {
      Node* node = graph.nodes[i];
      bool free_to_go = node->mark == 0;
      for (uint32_t k = 0; k < node->need_count && free_to_go; ++k)
        free_to_go = node->needs[k]->mark != 0;
      if (!free_to_go) continue;
      node->mark = 1;
      order[placed++] = node;
      more = true;
    }
  }
  if (placed == graph.count) return order;
  free(order);
  return nullptr;
}

CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUDA_KERNEL_NODE_PARAMS params{};
  memcpy(&params, &old, sizeof old);
  return params;
}

CUresult set_kernel(Node& node, const CUDA_KERNEL_NODE_PARAMS& params) {
  Function* function =
      params.func != nullptr ? find<Function>(params.func) : find<Function>(params.kern);
  const Shape shape = {{params.gridDimX, params.gridDimY, params.gridDimZ},
                       {params.blockDimX, params.blockDimY, params.blockDimZ},
                       params.sharedMemBytes};
  const Context* context = function != nullptr && function->context != nullptr ? function->context
                           : params.ctx != nullptr ? find<Context>(params.ctx)
                                                   : current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult result = check_launch(function, *context, shape); result != CUDA_SUCCESS)
    return result;
  Arguments arguments{};
  if (const CUresult result = pack(*function, params.kernelParams, params.extra, arguments);
      result != CUDA_SUCCESS)
    return result;
  end_work(node);
  node.function = function;
  node.shape = shape;
  node.arguments = arguments;
  return point_at_arguments(node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace gantry::sim::cuda
