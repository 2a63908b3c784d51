// SPDX-License-Identifier: Apache-2.0
#include "node/why/why.hpp"

#include "cluster/podspec/ask.hpp"
#include "cluster/scheduler/survey.hpp"
#include "net/kube/pages.hpp"
#include "node/why/here.hpp"
#include "node/why/inside.hpp"
#include "node/why/placing_internal.hpp"
#include "node/why/pod.hpp"
#include "node/why/process.hpp"
#include "node/why/shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

namespace gantry::why {
namespace {

void append(Chain& chain, std::vector<Link> links) {
  for (auto& link : links) chain.links.push_back(std::move(link));
}

Link unknown(std::string id, std::string what, std::string read) {
  return {.id = std::move(id),
          .what = std::move(what),
          .verdict = Verdict::Unknown,
          .read = std::move(read)};
}

// A kubelet's own identity may not list everything: the scheduler's words are left then.
Status read_rooms(kube::Api& api, json::Value pod, const Wanted& wanted,
                  std::vector<NodeRoom>& rooms) {
  const auto resource = resource_in_question(pod, wanted);
  GANTRY_CHECK(kube::each_page(api, "/api/v1/nodes",
                               [&](json::Value nodes) { add_rooms(rooms, nodes, pod, resource); }));
  return kube::each_page(api, kube::kLivingPods,
                         [&](json::Value pods) { count_used(rooms, pods, resource); });
}

void add_scheduling(Chain& chain, kube::Api& api, const sys::Host& machine, json::Value pod,
                    const Wanted& wanted, const WhyOptions& options) {
  std::vector<NodeRoom> rooms;
  const bool placed = !pod["spec"]["nodeName"].string().value_or("").empty();
  const auto read = placed ? Status() : read_rooms(api, pod, wanted, rooms);
  chain.links.push_back(scheduling_link(pod, wanted, read.ok() ? rooms : std::vector<NodeRoom>()));
  if (!read.ok())
    chain.links.push_back(unknown("nodes", "What the nodes have free", read.error().text()));
  const auto here = std::find_if(rooms.begin(), rooms.end(), [&](const NodeRoom& room) {
    return room.name == options.node && room.allocatable == 0;
  });
  if (here != rooms.end())
    chain.links.push_back(
        registration_link(machine, options.device_plugins, resource_in_question(pod, wanted)));
}

kube::Get getting(kube::Api& api) {
  return [&api](const std::string& path) { return api.get(path); };
}

// How every node stands to a pod that waits for a share.
Result<std::vector<Stand>> stands_for(kube::Api& api, json::Value pod, const podspec::PodAsk& ask) {
  std::map<std::string, Refusal, std::less<>> refusals;
  GANTRY_TRY(auto survey, scheduler::survey(getting(api), "", [&](json::Value node) {
               refusals.insert_or_assign(node["metadata"]["name"].string().value_or(""),
                                         refusal_of(node, pod));
             }));
  scheduler::add_quotas(survey, getting(api), ask.name_space);
  std::vector<Stand> stands;
  for (auto& view : survey.views()) {
    std::vector<placement::Fit> fits;
    const std::string_view name = view.facts.name;
    survey.book->fit(ask, std::span(&name, 1), fits);
    auto& refusal = refusals[view.facts.name];
    stands.push_back({.view = std::move(view),
                      .fit = fits.empty() ? placement::Fit{} : fits.front(),
                      .refuses = std::move(refusal.what),
                      .remedy = std::move(refusal.remedy)});
  }
  return stands;
}

void add_share(Chain& chain, kube::Api& api, json::Value pod, const podspec::PodAsk& ask) {
  const auto node = pod["spec"]["nodeName"].string().value_or("");
  if (node.empty()) {
    const auto stands = stands_for(api, pod, ask);
    if (stands.ok()) return append(chain, stand_links(pod, ask, *stands));
    chain.links.push_back(scheduling_link(pod, {}, {}));
    chain.links.push_back(unknown("nodes", "What the nodes have free", stands.error().text()));
    return;
  }
  chain.links.push_back(scheduling_link(pod, {}, {}));
  const auto survey = scheduler::survey(getting(api), node);
  chain.links.push_back(
      survey.ok() ? placement_link(pod, ask, survey->book->view(node))
                  : unknown("share.placement", "GPUs were chosen for it", survey.error().text()));
}

struct Asking {  // a container that asks for GPUs
  std::string name;
  std::string id;     // the engine's, without "containerd://"
  std::string ended;  // "with status 1 (Error)"; "" while it runs
};

std::vector<Asking> asking_containers(json::Value pod) {
  std::vector<Asking> found;
  for (const auto container : pod["spec"]["containers"]) {
    if (limits_of(container).empty()) continue;
    Asking one{.name = container["name"].string().value_or("")};
    for (const auto status : pod["status"]["containerStatuses"]) {
      if (status["name"].string() != one.name) continue;
      const auto id = status["containerID"].string().value_or("");
      if (const auto at = id.find("://"); at != std::string::npos) one.id = id.substr(at + 3);
      if (const auto ended = status["state"]["terminated"])
        one.ended = fmt::format("with status {} ({})", ended["exitCode"].i64().value_or(0),
                                ended["reason"].string().value_or(""));
    }
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<Link> links_in(const sys::Host& machine, const Asking& container) {
  const auto what = fmt::format("What is in container {}", container.name);
  if (!container.ended.empty())
    return {unknown("container", what,
                    fmt::format("it has ended {}: kubectl logs shows its words", container.ended))};
  const auto opened = open_container(machine, container.id);
  if (!opened.ok()) return {unknown("container", what, opened.error().text())};
  return inside_links(opened->root, opened->inside);
}

void add_containers(Chain& chain, const sys::Host& machine, json::Value pod) {
  const auto containers = asking_containers(pod);
  for (const auto& container : containers) {
    auto links = links_in(machine, container);
    if (containers.size() > 1) {
      for (auto& link : links) link.what = fmt::format("{}: {}", container.name, link.what);
    }
    append(chain, std::move(links));
  }
}

void add_node(Chain& chain, kube::Api& api, const sys::Host& machine, json::Value pod,
              const Wanted& wanted, const WhyOptions& options) {
  const auto name = pod["spec"]["nodeName"].string().value_or("");
  const auto node = api.get(kube::node_path(name));
  if (node.ok()) {
    append(chain, node_links(node->root(), pod, wanted));
  } else {
    chain.links.push_back(unknown("node", "What the node offers", node.error().text()));
  }
  const bool here = name == options.node;
  if (here && pod["status"]["phase"].string() == "Pending") {
    for (const auto& [resource, count] : wanted) {
      // Amounts of a node that counts in MiB are no devices: its slots are.
      if (resource == podspec::kGpuMem && wanted.contains(std::string(podspec::kSlot))) continue;
      chain.links.push_back(registration_link(machine, options.device_plugins, resource));
    }
  }
  chain.links.push_back(admission_link(pod));
  const auto uid = pod["metadata"]["uid"].string().value_or("");
  const auto space = pod["metadata"]["namespace"].string().value_or("default");
  const auto events = api.get(
      fmt::format("/api/v1/namespaces/{}/events?limit=100&fieldSelector=involvedObject.uid%3D{}",
                  kube::escaped(space), kube::escaped(uid)));
  chain.links.push_back(engine_link(pod, events.ok() ? events->root() : json::Value()));
  if (chain.first_broken() != nullptr) return;
  if (!here) {
    chain.links.push_back(
        unknown("container", "What is in the container", fmt::format("run the same on {}", name)));
    return;
  }
  if (pod["status"]["phase"].string() == "Running") {
    chain.links.push_back(allocation_link(machine, options.device_plugins, pod));
    if (node.ok())
      chain.links.push_back(held_health_link(machine, options.device_plugins, pod, node->root()));
    append(chain, share_state_links(machine, pod));
  }
  add_containers(chain, machine, pod);
}

}  // namespace

Result<Chain> why_pod(kube::Api& api, const sys::Host& machine, const std::string& name_space,
                      const std::string& name, const WhyOptions& options) {
  GANTRY_TRY(const auto document, api.get(kube::pod_path(name_space, name)));
  const auto pod = document.root();
  Chain chain{.subject = fmt::format("pod {}/{}", name_space, name), .links = spec_links(pod)};
  if (chain.first_broken() != nullptr) return chain;
  const auto wanted = wanted_by(pod);
  const auto ask = podspec::ask_of(pod);
  if (ask.ok() && *ask && (*ask)->shared()) {
    add_share(chain, api, pod, **ask);
  } else {
    add_scheduling(chain, api, machine, pod, wanted, options);
  }
  if (chain.first_broken() == nullptr) add_node(chain, api, machine, pod, wanted, options);
  return chain;
}

Result<Chain> why_container(const sys::Host& machine, const std::string& id) {
  GANTRY_TRY(const auto container, open_container(machine, id));
  return Chain{.subject = "container " + id,
               .links = inside_links(container.root, container.inside)};
}

}  // namespace gantry::why
