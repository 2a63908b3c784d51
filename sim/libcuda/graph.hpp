// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes with their work and their dependencies. An executable graph is a separate copy with
// an order. A node keeps its number in every copy.
#pragma once

#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/launches.hpp"

namespace gantry::sim::cuda {

struct Graph;

struct Node : Object {
  static constexpr Kind kKind = Kind::Node;
  Graph* graph;
  CUgraphNodeType type;
  uint64_t id;  // of the original node
  Node** needs;
  uint32_t need_count;
  bool disabled;
  uint32_t mark;  // used while the graph is traversed
  uint64_t end_ns;
  // By type:
  Function* function;
  Shape shape;
  Arguments arguments;
  void** pointers;  // to the arguments, for queries
  CUDA_MEMCPY3D copy;
  CUDA_MEMSET_NODE_PARAMS fill;
  CUDA_HOST_NODE_PARAMS host;
  Graph* child;
  CUevent event;
  CUDA_MEM_ALLOC_NODE_PARAMS alloc;
  CUdeviceptr freed;
};

struct Graph : Object {
  static constexpr Kind kKind = Kind::Graph;
  Node** nodes;
  uint32_t count;
  bool inner;  // part of a child or executable graph: the program may not destroy it
  uint64_t id;
};

struct GraphExec : Object {
  static constexpr Kind kKind = Kind::GraphExec;
  Graph* graph;
  uint64_t source;  // number of the graph it was created from
  Node** order;
  uint64_t flags;
  uint32_t running;  // launches under way: host functions of the program run without the lock
  bool doomed;       // destroyed while it ran
};

Graph* make_graph(bool inner);
void end_graph(Graph& graph);
void end_node(Node& node);
// Adds a node without its work; nullptr if there is no memory.
Node* add_node(Graph& graph, CUgraphNodeType type, Node* const* needs, size_t need_count);
bool add_need(Node& node, Node* need);
bool remove_need(Node& node, const Node* need);
bool has_memory_nodes(const Graph& graph);

// A copy with the same numbers; nullptr if there is no memory.
Graph* copy_graph(const Graph& graph);
// Copies the work of the other node; false if there is no memory.
bool copy_work(Node& node, const Node& from);
Node* node_with(const Graph& graph, uint64_t id);

// The nodes in an order in which each comes after its dependencies; nullptr if there is a cycle.
Node** order_of(const Graph& graph);

CUresult set_kernel(Node& node, const CUDA_KERNEL_NODE_PARAMS& params);
CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1& old);

// Whether the parameters are given and complete.
template <class Params>
bool is_complete(const Params* params) {
  return params != nullptr;
}
inline bool is_complete(const CUDA_HOST_NODE_PARAMS* params) {
  return params != nullptr && params->fn != nullptr;
}

// Memory of graphs (graph_memory.cpp): its address is fixed from the beginning; it has memory from
// the launch to the free.
CUresult reserve_for(Node& node, CUDA_MEM_ALLOC_NODE_PARAMS& params);
void keep_reserved(const Node& node);
void leave_reserved(const Node& node);
CUresult take_graph_memory(uint64_t address);
bool is_graph_memory_live(uint64_t address);
// For cuMemFree, cuMemFreeAsync and the free nodes; false if it is not memory of a graph or not
// allocated.
bool free_graph_memory(uint64_t address);
void trim_graph_memory(Device& device);

// Does all work of the graph and adds its duration to the stream.
CUresult run_graph(GraphExec& exec, Stream& stream);

}  // namespace gantry::sim::cuda
