// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate: the driver takes it when a graph is launched and keeps it for the
// next one. What is charged is what it says to have reserved.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

// One of the driver's functions that bring a graph to the GPU.
using GraphCall = CUresult (*)(CUgraphExec, CUstream);
// A launch or an upload; refused when the graph's memory does not fit. Costs one look where no
// graph allocates.
CUresult launch_graph(CUgraphExec exec, CUstream stream, GraphCall call);

// The charge becomes what the driver says.
void settle_graphs(uint32_t gpu);
bool reclaim_graphs(uint32_t gpu);
// In the child of a fork.
void reset_graphs_after_fork();

// What the graph's nodes allocate, where they lie on top of each other once; 0 for most graphs.
struct GraphFootprint {
  uint64_t bytes;
  uint32_t gpu;
};
GraphFootprint footprint_of(CUgraph graph);

}  // namespace gantry::fence
