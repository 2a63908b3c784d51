// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes with what they do and what they wait for. An executable graph is a copy of its own
// with an order; a node's number goes with it into every copy.
#pragma once

#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/launches.hpp"

namespace gantry::sim::cuda {

struct Graph;

struct Node : Object {
  static constexpr Kind kKind = Kind::Node;
  Graph* graph;
  CUgraphNodeType type;
  uint64_t id;  // of the node it was first
  Node** needs;
  uint32_t need_count;
  bool disabled;
  uint32_t mark;  // of whoever walks the graph
  uint64_t end_ns;
  // By type:
  Function* function;
  Shape shape;
  Arguments arguments;
  void** pointers;  // to the arguments, for who asks
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
  bool inner;  // a child's or an executable's: not the program's to destroy
  uint64_t id;
};

struct GraphExec : Object {
  static constexpr Kind kKind = Kind::GraphExec;
  Graph* graph;
  uint64_t source;  // number of the graph it was made from
  Node** order;
  uint64_t flags;
  uint32_t running;  // launches under way: the program's own functions run without the lock
  bool doomed;       // destroyed while it ran
};

Graph* make_graph(bool inner);
void end_graph(Graph& graph);
void end_node(Node& node);
// Without what it does; nullptr when memory is short.
Node* add_node(Graph& graph, CUgraphNodeType type, Node* const* needs, size_t need_count);
bool add_need(Node& node, Node* need);
bool remove_need(Node& node, const Node* need);
bool has_memory_nodes(const Graph& graph);

// A copy with the same numbers; nullptr when memory is short.
Graph* copy_graph(const Graph& graph);
// Takes over what the other does; false when memory is short.
bool copy_work(Node& node, const Node& from);
Node* node_with(const Graph& graph, uint64_t id);

// The nodes so that each comes after what it waits for; nullptr when they wait for each other.
Node** order_of(const Graph& graph);

CUresult set_kernel(Node& node, const CUDA_KERNEL_NODE_PARAMS& params);
CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1& old);

// Whether somebody gave parameters, and with them what cannot be left out.
template <class Params>
bool is_complete(const Params* params) {
  return params != nullptr;
}
inline bool is_complete(const CUDA_HOST_NODE_PARAMS* params) {
  return params != nullptr && params->fn != nullptr;
}

// Memory of graphs (graph_memory.cpp): it has its address from the beginning, and memory behind it
// from the launch to the free.
CUresult reserve_for(Node& node, CUDA_MEM_ALLOC_NODE_PARAMS& params);
void keep_reserved(const Node& node);
void leave_reserved(const Node& node);
CUresult take_graph_memory(uint64_t address);
bool is_graph_memory_live(uint64_t address);
// For cuMemFree, cuMemFreeAsync and the free nodes; false when it is not a graph's or not live.
bool free_graph_memory(uint64_t address);
void trim_graph_memory(Device& device);

// Does all that is in the graph, and how long it takes goes into the stream.
CUresult run_graph(GraphExec& exec, Stream& stream);

}  // namespace gantry::sim::cuda
