// SPDX-License-Identifier: Apache-2.0
// The links of the chain that the API server's objects show. Pure: JSON in, links out.
#pragma once

#include "json/document.hpp"
#include "why/chain.hpp"

#include <map>
#include <string>
#include <vector>

namespace gantry::why {

// GPUs that a pod's containers ask for, by resource: "nvidia.com/gpu" -> 2. As the scheduler
// counts: the larger of the init containers' and the sum of the others.
using Wanted = std::map<std::string, std::int64_t>;
Wanted wanted_by(json::Value pod);

struct NodeRoom {
  std::string name;
  std::int64_t capacity = 0, allocatable = 0, used = 0;
  std::string refuses;  // a taint or a selector that keeps this pod away; "" = none
};
// For each node, how much of `resource` there is and how much other pods have.
std::vector<NodeRoom> rooms(json::Value nodes, json::Value pods, json::Value pod,
                            const std::string& resource);

// The spec: limits missing, requests without limits, fractions, the resource name of 2017, mounts
// of the host's driver.
std::vector<Link> spec_links(json::Value pod);
// Scheduling: which nodes, how much was free.
Link scheduling_link(json::Value pod, const Wanted& wanted, const std::vector<NodeRoom>& rooms);
// The node: it offers the resource at all, and its GPUs are healthy.
std::vector<Link> node_links(json::Value node, const Wanted& wanted);
// The kubelet: it admitted the pod.
Link admission_link(json::Value pod);
// The engine: it could create and start the containers.
Link engine_link(json::Value pod);

}  // namespace gantry::why
