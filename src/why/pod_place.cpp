// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "why/pod.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::why {
namespace {

std::int64_t count_of(json::Value quantities, const std::string& resource) {
  const auto value = quantities[resource];
  const auto text = value.string();
  return static_cast<std::int64_t>((text ? parse_u64(*text) : value.u64()).value_or(0));
}

bool tolerates(json::Value pod, json::Value taint) {
  for (const auto toleration : pod["spec"]["tolerations"]) {
    const auto key = toleration["key"].string().value_or("");
    const auto effect = toleration["effect"].string().value_or("");
    const bool exists = toleration["operator"].string().value_or("Equal") == "Exists";
    const bool names = key.empty() ? exists : taint["key"].string() == key;
    const bool fits =
        exists || toleration["value"].string().value_or("") == taint["value"].string().value_or("");
    if (names && fits && (effect.empty() || taint["effect"].string() == effect)) return true;
  }
  return false;
}

std::string refusal_of(json::Value node, json::Value pod) {
  for (const auto taint : node["spec"]["taints"]) {
    if (taint["effect"].string() == "PreferNoSchedule" || tolerates(pod, taint)) continue;
    return fmt::format("taint {}={}:{}", taint["key"].string().value_or(""),
                       taint["value"].string().value_or(""), taint["effect"].string().value_or(""));
  }
  for (const auto wanted : pod["spec"]["nodeSelector"]) {
    if (node["metadata"]["labels"][wanted.key()].string() == wanted.string()) continue;
    return fmt::format("no label {}={}", wanted.key(), wanted.string().value_or(""));
  }
  if (node["spec"]["unschedulable"].boolean() == true) return "cordoned";
  return "";
}

bool ended(json::Value pod) {
  const auto phase = pod["status"]["phase"].string();
  return phase == "Succeeded" || phase == "Failed";
}

// A condition of pod or node by its type.
json::Value condition(json::Value object, std::string_view type) {
  for (const auto entry : object["status"]["conditions"]) {
    if (entry["type"].string() == type) return entry;
  }
  return {};
}

std::string table(const std::vector<NodeRoom>& rooms) {
  std::string text;
  for (const auto& room : rooms) {
    text += fmt::format("{}{}: {} of {} free", text.empty() ? "" : "; ", room.name,
                        std::max<std::int64_t>(room.allocatable - room.used, 0), room.allocatable);
    if (!room.refuses.empty()) text += fmt::format(", {}", room.refuses);
  }
  return text;
}

void explain_full(Link& link, const std::string& resource, std::int64_t count,
                  const std::vector<NodeRoom>& rooms) {
  const auto offers = [](const NodeRoom& room) { return room.capacity > 0; };
  const auto could = [&](const NodeRoom& room) { return room.allocatable >= count; };
  if (std::none_of(rooms.begin(), rooms.end(), offers)) {
    link.cause = fmt::format("no node offers {}", resource);
    link.remedy = "on a GPU node: gantry doctor; is the agent there? kubectl get daemonset -A";
  } else if (std::none_of(rooms.begin(), rooms.end(), could)) {
    link.cause = fmt::format("the pod wants {} {}, and no node has so many", count, resource);
    link.remedy = "ask for fewer, or divide the work over several pods";
  } else if (std::all_of(rooms.begin(), rooms.end(), [&](const NodeRoom& room) {
               return !could(room) || !room.refuses.empty();
             })) {
    link.cause = "the nodes that have so many keep this pod away";
    link.remedy = "give the pod a toleration or another nodeSelector: see the nodes above";
  } else {
    link.cause = fmt::format("every {} of the nodes that would take this pod is in use", resource);
    link.remedy = "kubectl get pods -A -o wide shows who has them";
  }
}

}  // namespace

std::vector<NodeRoom> rooms(json::Value nodes, json::Value pods, json::Value pod,
                            const std::string& resource) {
  std::vector<NodeRoom> found;
  for (const auto node : nodes["items"]) {
    NodeRoom room{.name = node["metadata"]["name"].string().value_or(""),
                  .capacity = count_of(node["status"]["capacity"], resource),
                  .allocatable = count_of(node["status"]["allocatable"], resource),
                  .refuses = refusal_of(node, pod)};
    for (const auto other : pods["items"]) {
      if (other["spec"]["nodeName"].string() != room.name || ended(other)) continue;
      const auto wanted = wanted_by(other);
      if (const auto entry = wanted.find(resource); entry != wanted.end())
        room.used += entry->second;
    }
    found.push_back(std::move(room));
  }
  return found;
}

Link scheduling_link(json::Value pod, const Wanted& wanted, const std::vector<NodeRoom>& rooms) {
  Link link{.id = "scheduling", .what = "A node was found for it"};
  if (const auto node = pod["spec"]["nodeName"].string(); node && !node->empty()) {
    link.read = *node;
    return link;
  }
  link.verdict = Verdict::Broken;
  const auto said =
      condition(pod, "PodScheduled")["message"].string().value_or("not scheduled yet");
  link.read = rooms.empty() ? said : fmt::format("{} | {}", said, table(rooms));
  if (wanted.empty() || !contains(said, "nvidia.com/")) {
    link.cause = "the scheduler says: " + said;
    link.remedy = "kubectl describe pod shows its events";
    return link;
  }
  explain_full(link, wanted.begin()->first, wanted.begin()->second, rooms);
  return link;
}

std::vector<Link> node_links(json::Value node, const Wanted& wanted) {
  std::vector<Link> links;
  const auto name = node["metadata"]["name"].string().value_or("");
  for (const auto& [resource, count] : wanted) {
    const auto capacity = count_of(node["status"]["capacity"], resource);
    const auto allocatable = count_of(node["status"]["allocatable"], resource);
    Link link{.id = "node.capacity",
              .what = "The node offers " + resource,
              .read = fmt::format("{}: capacity {}, allocatable {}", name, capacity, allocatable)};
    if (capacity == 0) {
      link.verdict = Verdict::Broken;
      link.cause = fmt::format("the kubelet of {} has no {}: no device plugin is registered for it",
                               name, resource);
      link.remedy = fmt::format(
          "on {}: gantry doctor; systemctl status gantry-agent, or kubectl logs "
          "of the agent's pod there",
          name);
    } else if (allocatable < capacity) {
      link.verdict = Verdict::Doubtful;
      link.cause = fmt::format("{} of {} are not usable now", capacity - allocatable, capacity);
      link.remedy = "see GPUsHealthy below";
    }
    links.push_back(std::move(link));
  }
  if (const auto health = condition(node, "GPUsHealthy")) {
    Link link{.id = "node.health",
              .what = "The node's GPUs are healthy",
              .read = health["message"].string().value_or("")};
    if (health["status"].string() == "False") {
      link.verdict = Verdict::Doubtful;
      link.cause = link.read;
    }
    links.push_back(std::move(link));
  }
  return links;
}

Link admission_link(json::Value pod) {
  Link link{.id = "kubelet.admission", .what = "The kubelet admitted it"};
  const auto reason = pod["status"]["reason"].string().value_or("");
  const auto message = pod["status"]["message"].string().value_or("");
  if (reason != "UnexpectedAdmissionError" && reason != "OutOfnvidia.com/gpu" &&
      !contains(message, "device plugin") && !contains(message, "cannot allocate")) {
    link.read = pod["status"]["phase"].string().value_or("");
    return link;
  }
  link.verdict = Verdict::Broken;
  link.read = fmt::format("{}: {}", reason, message);
  link.cause = "the kubelet could not give it the devices: " + message;
  link.remedy = contains(message, "unhealthy") || contains(message, "no healthy")
                    ? "gantry doctor on the node; delete the pod when the GPUs are well again"
                    : "delete the pod and create it anew: a pod refused once is never tried again";
  return link;
}

Link engine_link(json::Value pod) {
  Link link{.id = "engine", .what = "The engine started its containers", .read = "no complaint"};
  for (const auto* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const auto status : pod["status"][list]) {
      const auto waiting = status["state"]["waiting"];
      const auto reason = waiting["reason"].string().value_or("");
      const auto message = waiting["message"].string().value_or("");
      if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
      link.verdict = Verdict::Broken;
      link.read = fmt::format("{}: {}", reason, message);
      link.cause = fmt::format("container {}: {}", status["name"].string().value_or(""), reason);
      link.remedy = "kubectl describe pod shows the engine's words; gantry doctor on the node";
      if (contains(message, "unresolvable CDI")) {
        link.cause = "the engine does not find the CDI device that it was told to inject";
        link.remedy = "on the node: gantry cdi refresh; gantry cdi list";
      } else if (contains(message, "nvidia-container-runtime-hook") ||
                 contains(message, "nvidia-container-cli")) {
        link.cause = "an OCI hook of the engine failed: " + message;
        link.remedy = "on the node: gantry doctor; with CDI no hook is needed";
      }
      return link;
    }
  }
  return link;
}

}  // namespace gantry::why
