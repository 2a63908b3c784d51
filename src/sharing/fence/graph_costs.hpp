// SPDX-License-Identifier: Apache-2.0
// What a launch of a graph costs, by its executable. A small table: one that falls out is learned
// anew, and so is one whose address means another graph now.
#pragma once

#include "sharing/fence/costs.hpp"

namespace gantry::fence {

uint64_t graph_cost(const void* graph);
void learn_graph_cost(const void* graph, uint64_t believed, const Sample& sample);
void reset_graph_costs_after_fork();

}  // namespace gantry::fence
