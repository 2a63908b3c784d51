// SPDX-License-Identifier: Apache-2.0
// Scheduling: how much there is, which pods have it, and why nodes reject the pod.
#include "base/core/text.hpp"
#include "cluster/explain/node_rejection.hpp"
#include "cluster/explain/pod_steps.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::explain {
namespace {

constexpr std::size_t kShown = 8;  // nodes or pods that are named

using NodeCapacities = std::vector<NodeCapacity>;

std::string listed(const std::vector<std::string>& all, std::string_view separator) {
  const auto count = std::min(all.size(), kShown);
  auto text = fmt::format(
      "{}", fmt::join(all.begin(), all.begin() + static_cast<long>(count), std::string(separator)));
  if (all.size() > count) text += fmt::format("{}and {} more", separator, all.size() - count);
  return text;
}

// Nodes with GPUs come first, because in a large cluster only they matter.
std::string table(NodeCapacities capacities) {
  std::stable_sort(capacities.begin(), capacities.end(),
                   [](const NodeCapacity& a, const NodeCapacity& b) {
                     return (a.capacity > 0) > (b.capacity > 0);
                   });
  std::vector<std::string> rows;
  for (const auto& room : capacities) {
    auto row = fmt::format("{}: {} of {} free", room.name, room.free(), room.allocatable);
    if (room.capacity != room.allocatable) row += fmt::format(" (has {})", room.capacity);
    if (!room.refuses.empty()) row += ", " + room.refuses;
    rows.push_back(std::move(row));
  }
  return listed(rows, "; ");
}

NodeCapacities where(const NodeCapacities& capacities, const auto& holds) {
  NodeCapacities some;
  std::copy_if(capacities.begin(), capacities.end(), std::back_inserter(some), holds);
  return some;
}

void explain_unusable(Step& step, const std::string& resource, const NodeCapacities& capacities) {
  const auto unhealthy =
      where(capacities, [](const NodeCapacity& room) { return !room.unhealthy.empty(); });
  if (!unhealthy.empty()) {
    step.cause = fmt::format("{} of {} on {} are not usable: {}",
                             unhealthy.front().capacity - unhealthy.front().allocatable,
                             unhealthy.front().capacity, unhealthy.front().name,
                             unhealthy.front().unhealthy);
    step.remedy = fmt::format("on {}: gantry doctor; they are offered again when they are healthy",
                              unhealthy.front().name);
    return;
  }
  step.cause =
      fmt::format("{} has {} {}, but {} usable: the device plugin that offered them is gone",
                  capacities.front().name, capacities.front().capacity, resource,
                  capacities.front().allocatable);
  step.remedy = fmt::format(
      "on {}: systemctl status gantry-agent, or kubectl get pods -A -o wide for the agent's pod "
      "there",
      capacities.front().name);
}

void explain_in_use(Step& step, const std::string& resource, const NodeCapacities& usable) {
  std::vector<std::string> holders;
  std::int64_t own = 0;
  for (const auto& room : usable) {
    holders.insert(holders.end(), room.holders.begin(), room.holders.end());
    own += room.held_by_group;
  }
  if (own > 0) holders.push_back(fmt::format("other pods of its own group have {}", own));
  step.cause = fmt::format("the nodes that accept this pod do not have enough free {}: {}",
                           resource, listed(holders, ", "));
  step.remedy = own > 0 && holders.size() == 1
                    ? "its group asks for more than there is: write fewer pods, or fewer GPUs each"
                    : "wait for one of these pods to end, or delete it";
}

// Checks from nodes that offer nothing to nodes on which everything is in use; false: there is
// room.
bool explain_full(Step& step, const std::string& resource, std::int64_t count,
                  const NodeCapacities& capacities) {
  const auto offering =
      where(capacities, [](const NodeCapacity& room) { return room.capacity > 0; });
  const auto large =
      where(offering, [&](const NodeCapacity& room) { return room.capacity >= count; });
  const auto open = where(large, [](const NodeCapacity& room) { return room.refuses.empty(); });
  const auto usable =
      where(open, [&](const NodeCapacity& room) { return room.allocatable >= count; });
  if (offering.empty()) {
    step.cause = fmt::format("no node offers {}", resource);
    step.remedy =
        "on a GPU node: gantry doctor; kubectl get daemonset -A shows whether the agent is "
        "deployed";
  } else if (large.empty()) {
    step.cause = fmt::format("the pod asks for {} {}, but no node has that many", count, resource);
    step.remedy = "ask for fewer, or divide the work over several pods";
  } else if (open.empty()) {
    step.cause = fmt::format("the nodes that have {} {} do not accept this pod: {}: {}", count,
                             resource, large.front().name, large.front().refuses);
    step.remedy = large.front().remedy;
  } else if (usable.empty()) {
    explain_unusable(step, resource, open);
  } else if (std::none_of(usable.begin(), usable.end(),
                          [&](const NodeCapacity& room) { return room.free() >= count; })) {
    explain_in_use(step, resource, usable);
  } else {
    return false;
  }
  return true;
}

}  // namespace

json::Value condition(json::Value object, std::string_view type) {
  for (const auto entry : object["status"]["conditions"]) {
    if (entry["type"].string() == type) return entry;
  }
  return {};
}

void add_node_capacities(NodeCapacities& capacities, json::Value nodes, json::Value pod,
                         const std::string& resource) {
  for (const auto node : nodes["items"]) {
    auto refusal = node_rejection(node, pod);
    NodeCapacity room{.name = node["metadata"]["name"].string().value_or(""),
                      .capacity = device_count(node["status"]["capacity"][resource]),
                      .allocatable = device_count(node["status"]["allocatable"][resource]),
                      .refuses = std::move(refusal.what),
                      .remedy = std::move(refusal.remedy)};
    const auto health = condition(node, "GPUsHealthy");
    if (health["status"].string() == "False")
      room.unhealthy = health["message"].string().value_or("GPUsHealthy is False");
    capacities.push_back(std::move(room));
  }
}

bool has_capacity(const NodeCapacities& capacities) {
  return std::any_of(capacities.begin(), capacities.end(),
                     [](const NodeCapacity& room) { return room.capacity > 0; });
}

void count_used(NodeCapacities& capacities, json::Value pods, const std::string& resource,
                const std::optional<PodGroup>& group) {
  for (const auto other : pods["items"]) {
    const auto node = other["spec"]["nodeName"].string().value_or("");
    if (node.empty() || podspec::is_finished(other)) continue;
    const auto wanted = requested_devices(other);
    const auto entry = wanted.find(resource);
    const auto room = std::find_if(capacities.begin(), capacities.end(),
                                   [&](const NodeCapacity& one) { return one.name == node; });
    if (entry == wanted.end() || entry->second == 0 || room == capacities.end()) continue;
    room->used += entry->second;
    if (group && group->has(other)) {
      room->held_by_group += entry->second;
      continue;
    }
    room->holders.push_back(
        fmt::format("{}/{} has {}", other["metadata"]["namespace"].string().value_or(""),
                    other["metadata"]["name"].string().value_or(""), entry->second));
  }
}

std::string scheduled_resource(json::Value pod, const RequestedDevices& wanted) {
  const auto said = condition(pod, "PodScheduled")["message"].string().value_or("");
  for (const auto& [resource, count] : wanted) {
    if (contains(said, "Insufficient " + resource)) return resource;
  }
  return wanted.empty() ? "" : wanted.begin()->first;
}

Step scheduling_step(json::Value pod, const RequestedDevices& wanted,
                     const NodeCapacities& capacities) {
  Step step{.id = "scheduling", .what = "A node was found for it"};
  if (const auto node = pod["spec"]["nodeName"].string(); node && !node->empty()) {
    step.read = *node;
    return step;
  }
  step.verdict = StepStatus::Failed;
  const auto said = condition(pod, "PodScheduled")["message"].string().value_or(
      "the scheduler has not processed it yet");
  step.read = capacities.empty() ? said : fmt::format("{} | {}", said, table(capacities));
  const auto resource = scheduled_resource(pod, wanted);
  if (!resource.empty() && !capacities.empty() &&
      explain_full(step, resource, wanted.at(resource), capacities))
    return step;
  step.cause = "the scheduler says: " + said;
  step.remedy = "kubectl describe pod shows its events";
  return step;
}

std::vector<Step> node_steps(json::Value node, json::Value pod, const RequestedDevices& wanted) {
  std::vector<Step> steps;
  const bool runs = pod["status"]["phase"].string() != "Pending";
  const auto wrong = runs ? StepStatus::Warning : StepStatus::Failed;
  const auto name = node["metadata"]["name"].string().value_or("");
  if (const auto ready = condition(node, "Ready"); ready && ready["status"].string() != "True")
    steps.push_back(
        {.id = "node.ready",
         .what = "The node's kubelet answers",
         .verdict = wrong,
         .read = ready["message"].string().value_or(""),
         .cause = fmt::format("the kubelet of {} does not answer or is not ready", name),
         .remedy = fmt::format("on {}: systemctl status kubelet", name)});
  for (const auto& [resource, count] : wanted) {
    const auto capacity = device_count(node["status"]["capacity"][resource]);
    const auto allocatable = device_count(node["status"]["allocatable"][resource]);
    Step step{.id = "node.capacity",
              .what = "The node offers " + resource,
              .read = fmt::format("{}: capacity {}, allocatable {}", name, capacity, allocatable)};
    if (capacity == 0) {
      step.verdict = wrong;
      step.cause = fmt::format("the kubelet of {} has no {}: no device plugin is registered for it",
                               name, resource);
      step.remedy = fmt::format(
          "on {}: gantry doctor; systemctl status gantry-agent, or kubectl logs "
          "of the agent's pod there",
          name);
    } else if (allocatable < capacity) {
      step.verdict = StepStatus::Warning;
      step.cause = fmt::format("{} of {} are not usable now", capacity - allocatable, capacity);
      step.remedy = fmt::format("on {}: gantry doctor", name);
    }
    steps.push_back(std::move(step));
  }
  if (const auto health = condition(node, "GPUsHealthy")) {
    Step step{.id = "node.health",
              .what = "The node's GPUs are healthy",
              .read = health["message"].string().value_or("")};
    if (health["status"].string() == "False") {
      step.verdict = StepStatus::Warning;
      step.cause = step.read;
      step.remedy = fmt::format("on {}: gantry doctor", name);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace gantry::explain
