// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate. The driver allocates it when a graph is launched and keeps it for
// the next launch. The charge is the amount that the driver reports as reserved.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

// One of the driver's functions that launch or upload a graph.
using GraphCall = CUresult (*)(CUgraphExec, CUstream);
// Launches or uploads a graph; refuses if the graph's memory does not fit. If no graph allocates
// memory, this only reads one variable.
CUresult launch_graph(CUgraphExec exec, CUstream stream, GraphCall call);

// Updates the charge to what the driver reports.
void settle_graphs(uint32_t gpu);
bool reclaim_graphs(uint32_t gpu);
// Call this in the child of a fork.
void reset_graphs_after_fork();

// The memory that the graph's nodes allocate; allocations that share an address count once. 0 for
// most graphs.
struct GraphFootprint {
  uint64_t bytes;
  uint32_t gpu;
};
GraphFootprint footprint_of(CUgraph graph);

}  // namespace gantry::fence
