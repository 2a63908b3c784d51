// SPDX-License-Identifier: Apache-2.0
#include "why/why.hpp"

#include "base/text.hpp"
#include "kubelet/checkpoint.hpp"
#include "probe/kernel_view.hpp"
#include "why/inside.hpp"
#include "why/pod.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

// "containerd://0123..." of the first container that wants GPUs, or of the first at all.
std::string container_id(json::Value pod) {
  for (const auto status : pod["status"]["containerStatuses"]) {
    const auto id = status["containerID"].string().value_or("");
    if (const auto at = id.find("://"); at != std::string::npos) return id.substr(at + 3);
  }
  return "";
}

Result<std::vector<Link>> links_inside(const sys::Host& machine, const std::string& id) {
  GANTRY_TRY(const int pid, process_of(machine, id));
  GANTRY_TRY(auto inside, read_inside(machine, pid));
  inside.driver_version = probe::read_driver_module(machine).version;
  GANTRY_TRY(const auto root, sys::Host::at(machine.outside(fmt::format("/proc/{}/root", pid))));
  return inside_links(root, inside);
}

// On its own node the kubelet's record says which devices it gave.
Link allocation_link(const sys::Host& machine, json::Value pod, const WhyOptions& options) {
  Link link{.id = "kubelet.allocation", .what = "The kubelet gave it devices"};
  const auto checkpoint = kubelet::read_checkpoint(machine.outside(options.device_plugins));
  if (!checkpoint.ok()) {
    link.verdict = Verdict::Unknown;
    link.read = checkpoint.error().text();
    return link;
  }
  const auto uid = pod["metadata"]["uid"].string();
  for (const auto& holder : checkpoint->holders) {
    if (holder.pod_uid != uid) continue;
    link.read += fmt::format("{}{}: {} of {}", link.read.empty() ? "" : ", ", holder.container,
                             fmt::join(holder.ids, " "), holder.resource);
  }
  if (!link.read.empty()) return link;
  link.verdict = Verdict::Broken;
  link.read = "nothing in the kubelet's checkpoint";
  link.cause = "the kubelet admitted the pod before any plugin had offered the resource";
  link.remedy = "delete the pod and create it anew";
  return link;
}

void add_node(Chain& chain, kube::Api& api, const sys::Host& machine, json::Value pod,
              const Wanted& wanted, const WhyOptions& options) {
  const auto name = pod["spec"]["nodeName"].string().value_or("");
  const auto node = api.get(kube::node_path(name));
  if (node.ok()) {
    for (auto& link : node_links(node->root(), wanted)) chain.links.push_back(std::move(link));
  }
  chain.links.push_back(admission_link(pod));
  chain.links.push_back(engine_link(pod));
  if (chain.first_broken() != nullptr) return;
  if (name != options.node) {
    chain.links.push_back({.id = "container",
                           .what = "What is in the container",
                           .verdict = Verdict::Unknown,
                           .read = fmt::format("run the same on {}", name)});
    return;
  }
  chain.links.push_back(allocation_link(machine, pod, options));
  auto inside = links_inside(machine, container_id(pod));
  if (!inside.ok()) {
    chain.links.push_back({.id = "container",
                           .what = "What is in the container",
                           .verdict = Verdict::Unknown,
                           .read = inside.error().text()});
    return;
  }
  for (auto& link : *inside) chain.links.push_back(std::move(link));
}

}  // namespace

Result<Chain> why_pod(kube::Api& api, const sys::Host& machine, const std::string& name_space,
                      const std::string& name, const WhyOptions& options) {
  GANTRY_TRY(const auto document, api.get(kube::pod_path(name_space, name)));
  const auto pod = document.root();
  Chain chain{.subject = fmt::format("pod {}/{}", name_space, name), .links = spec_links(pod)};
  if (chain.first_broken() != nullptr) return chain;
  const auto wanted = wanted_by(pod);
  std::vector<NodeRoom> room;
  if (pod["spec"]["nodeName"].string().value_or("").empty()) {
    GANTRY_TRY(const auto nodes, api.get("/api/v1/nodes"));
    GANTRY_TRY(
        const auto pods,
        api.get(
            "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"));
    room = rooms(nodes.root(), pods.root(), pod, wanted.begin()->first);
  }
  chain.links.push_back(scheduling_link(pod, wanted, room));
  if (chain.first_broken() == nullptr) add_node(chain, api, machine, pod, wanted, options);
  return chain;
}

Result<Chain> why_container(const sys::Host& machine, const std::string& id) {
  GANTRY_TRY(auto links, links_inside(machine, id));
  return Chain{.subject = "container " + id, .links = std::move(links)};
}

}  // namespace gantry::why
