// SPDX-License-Identifier: Apache-2.0
// The cost of a graph launch, by executable graph. The table is small: a cost that was dropped from
// it is learned again, as is the cost of a new graph at a reused address.
#pragma once

#include "sharing/fence/costs.hpp"

namespace gantry::fence {

uint64_t graph_cost(const void* graph);
void learn_graph_cost(const void* graph, uint64_t believed, const Sample& sample);
void reset_graph_costs_after_fork();

}  // namespace gantry::fence
