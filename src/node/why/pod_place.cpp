// SPDX-License-Identifier: Apache-2.0
// Scheduling: how much there is, who has it, and what keeps a pod from the rest.
#include "base/core/text.hpp"
#include "node/why/placing_internal.hpp"
#include "node/why/pod.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

constexpr std::size_t kShown = 8;  // nodes or pods that are named

using Rooms = std::vector<NodeRoom>;

bool ended(json::Value pod) {
  const auto phase = pod["status"]["phase"].string();
  return phase == "Succeeded" || phase == "Failed";
}

std::string listed(const std::vector<std::string>& all, std::string_view separator) {
  const auto count = std::min(all.size(), kShown);
  auto text = fmt::format(
      "{}", fmt::join(all.begin(), all.begin() + static_cast<long>(count), std::string(separator)));
  if (all.size() > count) text += fmt::format("{}and {} more", separator, all.size() - count);
  return text;
}

// Those with GPUs first: of a thousand nodes they are the ones that matter.
std::string table(Rooms rooms) {
  std::stable_sort(rooms.begin(), rooms.end(), [](const NodeRoom& a, const NodeRoom& b) {
    return (a.capacity > 0) > (b.capacity > 0);
  });
  std::vector<std::string> rows;
  for (const auto& room : rooms) {
    auto row = fmt::format("{}: {} of {} free", room.name, room.free(), room.allocatable);
    if (room.capacity != room.allocatable) row += fmt::format(" (has {})", room.capacity);
    if (!room.refuses.empty()) row += ", " + room.refuses;
    rows.push_back(std::move(row));
  }
  return listed(rows, "; ");
}

Rooms where(const Rooms& rooms, const auto& holds) {
  Rooms some;
  std::copy_if(rooms.begin(), rooms.end(), std::back_inserter(some), holds);
  return some;
}

void explain_unusable(Link& link, const std::string& resource, const Rooms& rooms) {
  const auto sick = where(rooms, [](const NodeRoom& room) { return !room.sick.empty(); });
  if (!sick.empty()) {
    link.cause = fmt::format("{} of {} on {} are not usable: {}",
                             sick.front().capacity - sick.front().allocatable,
                             sick.front().capacity, sick.front().name, sick.front().sick);
    link.remedy = fmt::format("on {}: gantry doctor; they are offered again when they are well",
                              sick.front().name);
    return;
  }
  link.cause =
      fmt::format("{} has {} {}, but {} usable: the device plugin that offered them is gone",
                  rooms.front().name, rooms.front().capacity, resource, rooms.front().allocatable);
  link.remedy = fmt::format(
      "on {}: systemctl status gantry-agent, or kubectl get pods -A -o wide for the agent's pod "
      "there",
      rooms.front().name);
}

// From the node that has nothing to the one that has all of it in use; false: there is room.
bool explain_full(Link& link, const std::string& resource, std::int64_t count, const Rooms& rooms) {
  const auto offering = where(rooms, [](const NodeRoom& room) { return room.capacity > 0; });
  const auto large = where(offering, [&](const NodeRoom& room) { return room.capacity >= count; });
  const auto open = where(large, [](const NodeRoom& room) { return room.refuses.empty(); });
  const auto usable = where(open, [&](const NodeRoom& room) { return room.allocatable >= count; });
  if (offering.empty()) {
    link.cause = fmt::format("no node offers {}", resource);
    link.remedy = "on a GPU node: gantry doctor; is the agent there? kubectl get daemonset -A";
  } else if (large.empty()) {
    link.cause = fmt::format("the pod wants {} {}, and no node has so many", count, resource);
    link.remedy = "ask for fewer, or divide the work over several pods";
  } else if (open.empty()) {
    link.cause = fmt::format("the nodes that have {} {} keep this pod away: {}: {}", count,
                             resource, large.front().name, large.front().refuses);
    link.remedy = large.front().remedy;
  } else if (usable.empty()) {
    explain_unusable(link, resource, open);
  } else if (std::none_of(usable.begin(), usable.end(),
                          [&](const NodeRoom& room) { return room.free() >= count; })) {
    std::vector<std::string> holders;
    for (const auto& room : usable)
      holders.insert(holders.end(), room.holders.begin(), room.holders.end());
    link.cause = fmt::format(
        "every {} of the nodes that would take this pod is in use, or too many of "
        "them are: {}",
        resource, listed(holders, ", "));
    link.remedy = "wait for one of these pods to end, or delete it";
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

void add_rooms(Rooms& rooms, json::Value nodes, json::Value pod, const std::string& resource) {
  for (const auto node : nodes["items"]) {
    auto refusal = refusal_of(node, pod);
    NodeRoom room{.name = node["metadata"]["name"].string().value_or(""),
                  .capacity = count_in(node["status"]["capacity"][resource]),
                  .allocatable = count_in(node["status"]["allocatable"][resource]),
                  .refuses = std::move(refusal.what),
                  .remedy = std::move(refusal.remedy)};
    const auto health = condition(node, "GPUsHealthy");
    if (health["status"].string() == "False")
      room.sick = health["message"].string().value_or("GPUsHealthy is False");
    rooms.push_back(std::move(room));
  }
}

void count_used(Rooms& rooms, json::Value pods, const std::string& resource) {
  for (const auto other : pods["items"]) {
    const auto node = other["spec"]["nodeName"].string().value_or("");
    if (node.empty() || ended(other)) continue;
    const auto wanted = wanted_by(other);
    const auto entry = wanted.find(resource);
    const auto room = std::find_if(rooms.begin(), rooms.end(),
                                   [&](const NodeRoom& one) { return one.name == node; });
    if (entry == wanted.end() || entry->second == 0 || room == rooms.end()) continue;
    room->used += entry->second;
    room->holders.push_back(
        fmt::format("{}/{} has {}", other["metadata"]["namespace"].string().value_or(""),
                    other["metadata"]["name"].string().value_or(""), entry->second));
  }
}

std::string resource_in_question(json::Value pod, const Wanted& wanted) {
  const auto said = condition(pod, "PodScheduled")["message"].string().value_or("");
  for (const auto& [resource, count] : wanted) {
    if (contains(said, "Insufficient " + resource)) return resource;
  }
  return wanted.empty() ? "" : wanted.begin()->first;
}

Link scheduling_link(json::Value pod, const Wanted& wanted, const Rooms& rooms) {
  Link link{.id = "scheduling", .what = "A node was found for it"};
  if (const auto node = pod["spec"]["nodeName"].string(); node && !node->empty()) {
    link.read = *node;
    return link;
  }
  link.verdict = Verdict::Broken;
  const auto said = condition(pod, "PodScheduled")["message"].string().value_or(
      "the scheduler has not looked at it yet");
  link.read = rooms.empty() ? said : fmt::format("{} | {}", said, table(rooms));
  const auto resource = resource_in_question(pod, wanted);
  if (!resource.empty() && !rooms.empty() &&
      explain_full(link, resource, wanted.at(resource), rooms))
    return link;
  link.cause = "the scheduler says: " + said;
  link.remedy = "kubectl describe pod shows its events";
  return link;
}

std::vector<Link> node_links(json::Value node, json::Value pod, const Wanted& wanted) {
  std::vector<Link> links;
  const bool runs = pod["status"]["phase"].string() != "Pending";
  const auto wrong = runs ? Verdict::Doubtful : Verdict::Broken;
  const auto name = node["metadata"]["name"].string().value_or("");
  if (const auto ready = condition(node, "Ready"); ready && ready["status"].string() != "True")
    links.push_back(
        {.id = "node.ready",
         .what = "The node's kubelet answers",
         .verdict = wrong,
         .read = ready["message"].string().value_or(""),
         .cause = fmt::format("the kubelet of {} does not answer or is not ready", name),
         .remedy = fmt::format("on {}: systemctl status kubelet", name)});
  for (const auto& [resource, count] : wanted) {
    const auto capacity = count_in(node["status"]["capacity"][resource]);
    const auto allocatable = count_in(node["status"]["allocatable"][resource]);
    Link link{.id = "node.capacity",
              .what = "The node offers " + resource,
              .read = fmt::format("{}: capacity {}, allocatable {}", name, capacity, allocatable)};
    if (capacity == 0) {
      link.verdict = wrong;
      link.cause = fmt::format("the kubelet of {} has no {}: no device plugin is registered for it",
                               name, resource);
      link.remedy = fmt::format(
          "on {}: gantry doctor; systemctl status gantry-agent, or kubectl logs "
          "of the agent's pod there",
          name);
    } else if (allocatable < capacity) {
      link.verdict = Verdict::Doubtful;
      link.cause = fmt::format("{} of {} are not usable now", capacity - allocatable, capacity);
      link.remedy = fmt::format("on {}: gantry doctor", name);
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
      link.remedy = fmt::format("on {}: gantry doctor", name);
    }
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace gantry::why
