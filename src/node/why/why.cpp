// SPDX-License-Identifier: Apache-2.0
#include "node/why/why.hpp"

#include "cluster/explain/daemon_sets.hpp"
#include "cluster/explain/node_rejection.hpp"
#include "cluster/explain/pod_group.hpp"
#include "cluster/explain/pod_security.hpp"
#include "cluster/explain/pod_steps.hpp"
#include "cluster/explain/share_steps.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/scheduler/cluster_snapshot.hpp"
#include "net/kube/pages.hpp"
#include "node/why/container_steps.hpp"
#include "node/why/gpu_answer.hpp"
#include "node/why/node_steps.hpp"
#include "node/why/notebook.hpp"
#include "node/why/notebook_steps.hpp"
#include "node/why/process.hpp"
#include "node/why/share_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

namespace gantry::why {
namespace {

using explain::Explanation;
using explain::NodeCapacity;
using explain::NodeFit;
using explain::NodeRejection;
using explain::RequestedDevices;
using explain::Step;
using explain::StepStatus;

void append(Explanation& explanation, std::vector<Step> steps) {
  for (auto& step : steps) explanation.steps.push_back(std::move(step));
}

Step unknown(std::string id, std::string what, std::string read) {
  return {.id = std::move(id),
          .what = std::move(what),
          .verdict = StepStatus::Unknown,
          .read = std::move(read)};
}

// A kubelet's identity may not be allowed to list everything; then only the scheduler's message is
// used.
Status read_rooms(kube::Api& api, json::Value pod, const RequestedDevices& wanted,
                  std::vector<NodeCapacity>& capacities) {
  const auto resource = explain::scheduled_resource(pod, wanted);
  const auto group = explain::group_of(pod);
  GANTRY_CHECK(kube::each_page(api, "/api/v1/nodes", [&](json::Value nodes) {
    explain::add_node_capacities(capacities, nodes, pod, resource);
  }));
  return kube::each_page(api, kube::kActivePodsPath, [&](json::Value pods) {
    explain::count_used(capacities, pods, resource, group);
  });
}

constexpr std::string_view kRefusals = "events?limit=500&fieldSelector=reason%3DFailedCreate";

// No node offers what the pod asks for: is there a DaemonSet whose label no node has, or whose pods
// are refused? An identity that may not list them gets the step as it is.
void explain_missing_plugin(kube::Api& api, Step& step) {
  explain::GpuDaemonSets sets;
  auto read =
      kube::each_page(api, "/apis/apps/v1/daemonsets", [&](json::Value page) { sets.add(page); });
  if (read.ok())
    read = kube::each_page(api, "/api/v1/nodes", [&](json::Value page) { sets.compare(page); });
  if (!read.ok()) return;
  const auto events = api.get(fmt::format("/api/v1/{}", kRefusals));
  if (events.ok()) sets.add_refusals(events->root());
  sets.explain(step);
}

// The API server refused the pod, so that it does not exist: an event of its controller says why.
// Events stay for an hour; if the namespace allows everything by now, it is not that.
std::optional<Explanation> explain_refused(kube::Api& api, const std::string& name_space,
                                           const std::string& name) {
  const auto path = fmt::format("/api/v1/namespaces/{}", kube::percent_encode(name_space));
  const auto found = api.get(path);
  if (found.ok() &&
      found->root()["metadata"]["labels"][explain::kEnforceLabel].string() == "privileged")
    return std::nullopt;
  const auto events = api.get(fmt::format("{}/{}", path, kRefusals));
  if (!events.ok()) return std::nullopt;
  auto step = explain::refused_pod_step(events->root(), name);
  if (!step) return std::nullopt;
  return Explanation{.subject = fmt::format("pod {}/{}", name_space, name),
                     .steps = {*std::move(step)}};
}

// What the pod holds up, or which other pod of its Job it waits for.
void add_group(Explanation& explanation, kube::Api& api, json::Value pod) {
  const auto group = explain::group_of(pod);
  if (!group) return;
  explain::GroupState state;
  const auto path = fmt::format(
      "/api/v1/namespaces/{}/pods?labelSelector={}%3D{}", kube::percent_encode(group->name_space),
      kube::percent_encode(group->label), kube::percent_encode(group->name));
  const auto read = kube::each_page(
      api, path, [&](json::Value page) { explain::count_group(state, *group, page); });
  if (!read.ok()) return;
  if (auto step = explain::group_step(pod, *group, state))
    explanation.steps.push_back(*std::move(step));
}

void add_scheduling(Explanation& explanation, kube::Api& api, const sys::Host& machine,
                    json::Value pod, const RequestedDevices& wanted, const WhyOptions& options) {
  std::vector<NodeCapacity> capacities;
  const bool placed = !pod["spec"]["nodeName"].string().value_or("").empty();
  const auto read = placed ? Status() : read_rooms(api, pod, wanted, capacities);
  explanation.steps.push_back(
      explain::scheduling_step(pod, wanted, read.ok() ? capacities : std::vector<NodeCapacity>()));
  if (!placed && read.ok() && !explain::has_capacity(capacities) && !wanted.empty())
    explain_missing_plugin(api, explanation.steps.back());
  if (!read.ok())
    explanation.steps.push_back(unknown("nodes", "What the nodes have free", read.error().text()));
  const auto here = std::find_if(
      capacities.begin(), capacities.end(),
      [&](const NodeCapacity& room) { return room.name == options.node && room.allocatable == 0; });
  if (here != capacities.end())
    explanation.steps.push_back(registration_step(machine, options.device_plugins,
                                                  explain::scheduled_resource(pod, wanted)));
}

kube::GetPage getting(kube::Api& api) {
  return [&api](const std::string& path) { return api.get(path); };
}

// The scheduler's answer of every node for a pod that waits for a share.
Result<std::vector<NodeFit>> fit_of_nodes(kube::Api& api, json::Value pod,
                                          const podspec::PodRequest& ask) {
  std::map<std::string, NodeRejection, std::less<>> refusals;
  GANTRY_TRY(auto survey, scheduler::read_cluster(getting(api), "", [&](json::Value node) {
               refusals.insert_or_assign(node["metadata"]["name"].string().value_or(""),
                                         explain::node_rejection(node, pod));
             }));
  scheduler::add_quotas(survey, getting(api), ask.pod.name_space);
  std::vector<NodeFit> node_fits;
  for (auto& view : survey.views()) {
    std::vector<placement::Fit> fits;
    const std::string_view name = view.facts.name;
    survey.cache->fit(ask, std::span(&name, 1), fits);
    auto& refusal = refusals[view.facts.name];
    node_fits.push_back({.view = std::move(view),
                         .fit = fits.empty() ? placement::Fit{} : fits.front(),
                         .refuses = std::move(refusal.what),
                         .remedy = std::move(refusal.remedy)});
  }
  return node_fits;
}

void add_share(Explanation& explanation, kube::Api& api, json::Value pod,
               const podspec::PodRequest& ask) {
  const auto node = pod["spec"]["nodeName"].string().value_or("");
  if (node.empty()) {
    const auto node_fits = fit_of_nodes(api, pod, ask);
    if (node_fits.ok()) {
      auto steps = explain::share_scheduling_steps(pod, ask, *node_fits);
      if (!explain::has_shared_gpus(*node_fits)) explain_missing_plugin(api, steps.front());
      return append(explanation, std::move(steps));
    }
    explanation.steps.push_back(explain::scheduling_step(pod, {}, {}));
    explanation.steps.push_back(
        unknown("nodes", "What the nodes have free", node_fits.error().text()));
    return;
  }
  explanation.steps.push_back(explain::scheduling_step(pod, {}, {}));
  const auto survey = scheduler::read_cluster(getting(api), node);
  explanation.steps.push_back(
      survey.ok() ? explain::placement_step(pod, ask, survey->cache->view(node))
                  : unknown("share.placement", "GPUs were chosen for it", survey.error().text()));
}

struct GpuContainer {  // a container that asks for GPUs
  std::string name;
  std::string id;     // the engine's id, without "containerd://"
  std::string ended;  // "with status 1 (Error)"; "" while it runs
};

std::vector<GpuContainer> gpu_containers(json::Value pod) {
  std::vector<GpuContainer> found;
  for (const auto container : pod["spec"]["containers"]) {
    if (explain::gpu_limits(container).empty()) continue;
    GpuContainer one{.name = container["name"].string().value_or("")};
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

std::vector<Step> steps_in_container(const sys::Host& machine, const GpuContainer& container) {
  const auto what = fmt::format("What is in container {}", container.name);
  if (!container.ended.empty())
    return {unknown("container", what,
                    fmt::format("it ended {}: kubectl logs shows its output", container.ended))};
  const auto opened = open_container(machine, container.id);
  if (!opened.ok()) return {unknown("container", what, opened.error().text())};
  return container_steps(opened->root, opened->inside);
}

void add_containers(Explanation& explanation, const sys::Host& machine, json::Value pod) {
  const auto containers = gpu_containers(pod);
  for (const auto& container : containers) {
    auto steps = steps_in_container(machine, container);
    if (containers.size() > 1) {
      for (auto& step : steps) step.what = fmt::format("{}: {}", container.name, step.what);
    }
    append(explanation, std::move(steps));
  }
}

// The driver is asked only here: it may take seconds to start.
GpuState add_gpu_answer(Explanation& explanation, const sys::Host& machine, json::Value pod,
                        const WhyOptions& options) {
  auto answer = gpu_answer_step(machine, options.device_plugins, pod);
  const bool works = answer && answer->verdict == StepStatus::Ok;
  if (answer) explanation.steps.push_back(*std::move(answer));
  const auto faulty = [](const Step& step) {
    return step.id.starts_with("device.") && step.verdict == StepStatus::Failed;
  };
  if (std::any_of(explanation.steps.begin(), explanation.steps.end(), faulty))
    return GpuState::Unhealthy;
  return works ? GpuState::Works : GpuState::Unknown;
}

// The network of a container of the pod that runs on this node.
sys::UniqueFd pod_network(const sys::Host& machine, json::Value pod) {
  for (const auto& container : gpu_containers(pod)) {
    auto opened = open_container(machine, container.id);
    if (opened.ok() && opened->network.valid()) return std::move(opened->network);
  }
  return {};
}

void add_notebook(Explanation& explanation, const sys::Host& machine, json::Value pod,
                  const WhyOptions& options) {
  if (!options.notebook || pod["status"]["phase"].string() != "Running") return;
  const bool here = pod["spec"]["nodeName"].string() == options.node;
  const auto gpu = here ? add_gpu_answer(explanation, machine, pod, options) : GpuState::Unknown;
  const auto network = here ? pod_network(machine, pod) : sys::UniqueFd();
  append(explanation, notebook_steps(ask_notebook(pod, *options.notebook, network.get()), gpu));
}

void add_node(Explanation& explanation, kube::Api& api, const sys::Host& machine, json::Value pod,
              const RequestedDevices& wanted, const WhyOptions& options) {
  const auto name = pod["spec"]["nodeName"].string().value_or("");
  const auto node = api.get(kube::node_path(name));
  if (node.ok()) {
    append(explanation, explain::node_steps(node->root(), pod, wanted));
  } else {
    explanation.steps.push_back(unknown("node", "What the node offers", node.error().text()));
  }
  const bool here = name == options.node;
  if (here && pod["status"]["phase"].string() == "Pending") {
    for (const auto& [resource, count] : wanted) {
      // On a node that counts in MiB, amounts are not devices; its slots are.
      if (resource == podspec::kAliyunGpuMem && wanted.contains(std::string(podspec::kShareSlot)))
        continue;
      explanation.steps.push_back(registration_step(machine, options.device_plugins, resource));
    }
  }
  explanation.steps.push_back(explain::admission_step(pod));
  const auto uid = pod["metadata"]["uid"].string().value_or("");
  const auto space = pod["metadata"]["namespace"].string().value_or("default");
  const auto events = api.get(
      fmt::format("/api/v1/namespaces/{}/events?limit=100&fieldSelector=involvedObject.uid%3D{}",
                  kube::percent_encode(space), kube::percent_encode(uid)));
  explanation.steps.push_back(
      explain::engine_step(pod, events.ok() ? events->root() : json::Value()));
  if (explanation.first_failed() != nullptr) return;
  if (!here) {
    explanation.steps.push_back(unknown("container", "What is in the container",
                                        fmt::format("run the same command on {}", name)));
    return;
  }
  if (pod["status"]["phase"].string() == "Running") {
    explanation.steps.push_back(allocation_step(machine, options.device_plugins, pod));
    if (node.ok())
      explanation.steps.push_back(
          gpu_health_step(machine, options.device_plugins, pod, node->root()));
    append(explanation, share_state_steps(machine, pod));
  }
  add_containers(explanation, machine, pod);
}

}  // namespace

Result<Explanation> why_pod(kube::Api& api, const sys::Host& machine, const std::string& name_space,
                            const std::string& name, const WhyOptions& options) {
  auto document = api.get(kube::pod_path(name_space, name));
  if (!document.ok()) {
    if (document.error().code() == Errc::NotFound) {
      if (auto refused = explain_refused(api, name_space, name)) return *std::move(refused);
    }
    return std::move(document).error();
  }
  const auto pod = document->root();
  Explanation explanation{.subject = fmt::format("pod {}/{}", name_space, name),
                          .steps = explain::spec_steps(pod)};
  if (explanation.first_failed() != nullptr) return explanation;
  const auto wanted = explain::requested_devices(pod);
  const auto ask = podspec::parse_request(pod);
  if (ask.ok() && *ask && (*ask)->shared()) {
    add_share(explanation, api, pod, **ask);
  } else {
    add_scheduling(explanation, api, machine, pod, wanted, options);
  }
  add_group(explanation, api, pod);
  if (explanation.first_failed() == nullptr)
    add_node(explanation, api, machine, pod, wanted, options);
  add_notebook(explanation, machine, pod, options);
  return explanation;
}

Result<Explanation> why_container(const sys::Host& machine, const std::string& id) {
  GANTRY_TRY(const auto container, open_container(machine, id));
  return Explanation{.subject = "container " + id,
                     .steps = container_steps(container.root, container.inside)};
}

}  // namespace gantry::why
