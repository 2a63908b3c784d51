// SPDX-License-Identifier: Apache-2.0
// The steps that can be checked with objects of the API server. Pure: JSON in, steps out.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"
#include "cluster/explain/pod_group.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::explain {

// The GPUs that a pod's containers ask for, by resource: "nvidia.com/gpu" -> 2. Counted as the
// scheduler does: the maximum of the init containers or the sum of the others, whichever is larger.
using RequestedDevices = std::map<std::string, std::int64_t>;
RequestedDevices requested_devices(json::Value pod);
RequestedDevices gpu_limits(json::Value container);

// A whole number of devices, in any form that the API server writes; 0 for anything else.
std::int64_t device_count(json::Value quantity);

// A resource of which a whole number is wanted: not HAMi's amounts of memory or time.
bool counts_devices(std::string_view name);

// What surrounds a pod that is not in a cluster yet.
struct SpecContext {
  std::string kind;         // of the object that creates the pod; "": its owner says so
  json::Value object = {};  // the object as written, for limits outside the pod; absent: the pod
  bool others_ask = false;  // other pods of the same manifest ask for GPUs
};

// Checks the spec: amounts, names and places of GPU resources, missing limits, the resource name of
// 2017, the runtime class, mounts of the host's driver, GPUs chosen by environment. A pod that
// serves the cluster and asks for no GPU has one step, which is in order.
std::vector<Step> spec_steps(json::Value pod, const SpecContext& context = {});

struct NodeCapacity {
  std::string name;
  std::int64_t capacity = 0, allocatable = 0, used = 0;
  std::string refuses;               // a taint or a selector that rejects this pod; "": none
  std::string remedy;                // for that rejection
  std::string unhealthy;             // the message of the condition GPUsHealthy if it is False
  std::vector<std::string> holders;  // "default/train has 2"
  std::int64_t held_by_group = 0;    // by other pods of the pod's own group, which are no holders
  std::int64_t free() const { return allocatable > used ? allocatable - used : 0; }
};
// How much of `resource` each node has, and why it rejects the pod. Lists come in pages: nodes are
// added and pods are counted page by page.
void add_node_capacities(std::vector<NodeCapacity>& capacities, json::Value nodes, json::Value pod,
                         const std::string& resource);
void count_used(std::vector<NodeCapacity>& capacities, json::Value pods,
                const std::string& resource, const std::optional<PodGroup>& group = {});
// The resource that the scheduler reports as missing, or the first one; "" if the pod asks for
// none.
std::string scheduled_resource(json::Value pod, const RequestedDevices& wanted);

// Checks scheduling: which nodes there are and how much was free.
Step scheduling_step(json::Value pod, const RequestedDevices& wanted,
                     const std::vector<NodeCapacity>& capacities);
bool has_capacity(const std::vector<NodeCapacity>& capacities);  // if any node offers the resource
// Checks the node: its kubelet is alive, it offers the resource, and its GPUs are healthy. A
// problem that began after the pod got its GPUs is only a warning.
std::vector<Step> node_steps(json::Value node, json::Value pod, const RequestedDevices& wanted);
// Checks that the kubelet admitted the pod.
Step admission_step(json::Value pod);
// Checks that the engine could create and start the containers. `events` are those of the pod.
Step engine_step(json::Value pod, json::Value events);

// A condition of a pod or node, by its type.
json::Value condition(json::Value object, std::string_view type);

}  // namespace gantry::explain
