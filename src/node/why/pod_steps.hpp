// SPDX-License-Identifier: Apache-2.0
// The links of the chain that the API server's objects show. Pure: JSON in, links out.
#pragma once

#include "base/json/document.hpp"
#include "node/why/explanation.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gantry::why {

// GPUs that a pod's containers ask for, by resource: "nvidia.com/gpu" -> 2. As the scheduler
// counts: the larger of the init containers' and the sum of the others.
using RequestedDevices = std::map<std::string, std::int64_t>;
RequestedDevices requested_devices(json::Value pod);
RequestedDevices gpu_limits(json::Value container);

// A whole number of devices, however the API server writes it; 0 for anything else.
std::int64_t device_count(json::Value quantity);

// The spec: limits missing, requests without limits, fractions, the resource name of 2017, mounts
// of the host's driver, GPUs chosen by environment.
std::vector<Step> spec_steps(json::Value pod);

struct NodeCapacity {
  std::string name;
  std::int64_t capacity = 0, allocatable = 0, used = 0;
  std::string refuses;               // a taint or a selector that keeps this pod away; "" = none
  std::string remedy;                // against that
  std::string unhealthy;             // what the condition GPUsHealthy says when it is False
  std::vector<std::string> holders;  // "default/train has 2"
  std::int64_t free() const { return allocatable > used ? allocatable - used : 0; }
};
// For each node, how much of `resource` there is and what keeps the pod away. Lists come in pages:
// nodes are added and pods are counted page by page.
void add_node_capacities(std::vector<NodeCapacity>& capacities, json::Value nodes, json::Value pod,
                         const std::string& resource);
void count_used(std::vector<NodeCapacity>& capacities, json::Value pods,
                const std::string& resource);
// The resource that the scheduler complains of, or the first one; "" when none is wanted.
std::string scheduled_resource(json::Value pod, const RequestedDevices& wanted);

// Scheduling: which nodes, how much was free.
Step scheduling_step(json::Value pod, const RequestedDevices& wanted,
                     const std::vector<NodeCapacity>& capacities);
// The node: its kubelet lives, it offers the resource at all, and its GPUs are healthy. What is
// wrong by now but was not when the pod got its GPUs is worth a look only.
std::vector<Step> node_steps(json::Value node, json::Value pod, const RequestedDevices& wanted);
// The kubelet: it admitted the pod.
Step admission_step(json::Value pod);
// The engine: it could create and start the containers. `events`: the pod's own.
Step engine_step(json::Value pod, json::Value events);

// A condition of pod or node by its type.
json::Value condition(json::Value object, std::string_view type);

}  // namespace gantry::why
