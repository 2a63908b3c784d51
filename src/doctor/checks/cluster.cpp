// SPDX-License-Identifier: Apache-2.0
// The API server's view of this node: the resources it offers, and what keeps pods away from it.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/checks/containerd_config.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::string_view kPrefix = "nvidia.com/";

struct Node {
  Document object;
  std::string name;
  std::string why;  // why the object is missing; "" if it is there

  const Document& status() const { return object.at("status"); }
  const Document& spec() const { return object.at("spec"); }
  const std::string& label(std::string_view key) const {
    return object.at("metadata").at("labels").at(key).text();
  }
  Evidence evidence(std::string_view what, std::string value) const {
    return {fmt::format("Node {}, {}", name, what), std::move(value)};
  }
};

Node read_node(const Facts& f) {
  const auto* view = f.cluster();
  if (view == nullptr) return {.object = {}, .name = "", .why = "the API server was not asked"};
  if (!view->error.empty()) return {.object = {}, .name = "", .why = view->error};
  auto object = parse_json(view->node);
  if (!object.ok()) return {.object = {}, .name = "", .why = object.error().text()};
  auto name = object->at("metadata").at("name").text();
  return {.object = *std::move(object), .name = std::move(name), .why = ""};
}

Evidence counted(const Node& node, std::string_view where) {
  std::vector<std::string> found;
  for (const auto& [name, count] : node.status().at(where).members()) {
    if (name.starts_with(kPrefix)) found.push_back(fmt::format("{}: {}", name, count.text()));
  }
  return node.evidence(fmt::format("status.{}", where),
                       found.empty() ? "no nvidia.com/..." : join_names(found));
}

std::uint64_t count_of(const Node& node, std::string_view where, std::string_view resource) {
  return parse_u64(node.status().at(where).at(resource).text()).value_or(0);
}

const Document* condition(const Node& node, std::string_view type) {
  for (const auto& entry : node.status().at("conditions").items()) {
    if (entry.at("type").text() == type) return &entry;
  }
  return nullptr;
}

Finding judge_ready(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  const auto* ready = condition(node, "Ready");
  const auto read = node.evidence(
      "condition Ready", ready == nullptr
                             ? "(absent)"
                             : ready->at("status").text() + ": " + ready->at("message").text());
  if (ready != nullptr && ready->at("status").text() == "True")
    return ok("the API server sees this node as ready", {read});
  return fail("the API server does not see this node as ready", {read});
}

Finding judge_capacity(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  const auto read = counted(node, "capacity");
  const auto gpus = f.inventory().gpus.size();
  if (gpus == 0) return skip("the GPUs are not known: see module.loaded", {read});
  if (read.value == "no nvidia.com/...")
    return fail(fmt::format("this machine has {} GPU{}, but its node offers none", gpus,
                            gpus == 1 ? "" : "s"),
                {read});
  const auto whole = count_of(node, "capacity", "nvidia.com/gpu");
  // Shared GPUs and MIG instances have other resource names and other numbers.
  const bool alone = std::count(read.value.begin(), read.value.end(), ':') == 1 && whole > 0;
  if (alone && whole < gpus)
    return warn(fmt::format("this machine has {} GPU{}, but its node offers {}", gpus,
                            gpus == 1 ? "" : "s", whole),
                {read});
  return ok("the node offers its GPUs", {read});
}

Finding judge_allocatable(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  std::vector<std::string> missing;
  for (const auto& [name, text] : node.status().at("capacity").members()) {
    if (!name.starts_with(kPrefix)) continue;
    const auto has = parse_u64(text.text()).value_or(0);
    const auto usable = count_of(node, "allocatable", name);
    if (usable < has) missing.push_back(fmt::format("{} of {} {}", has - usable, has, name));
  }
  std::vector<Evidence> read{counted(node, "capacity"), counted(node, "allocatable")};
  if (const auto* health = condition(node, "GPUsHealthy"))
    read.push_back(node.evidence("condition GPUsHealthy", health->at("message").text()));
  if (!missing.empty())
    return warn(fmt::format("not usable now: {}", join_names(missing)), std::move(read));
  return ok("everything that the node offers can be used", std::move(read));
}

bool has_cdi(const Facts& f) {
  return f.host().exists("/var/run/cdi/nvidia.yaml") || f.host().exists("/etc/cdi/nvidia.yaml");
}

Finding judge_runtime_class(const Facts& f) {
  const auto* view = f.cluster();
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  const auto list = parse_json(view->runtime_classes);
  if (!list.ok()) return skip("the cluster's runtime classes cannot be read");
  std::vector<std::string> classes;
  for (const auto& entry : list->at("items").items()) {
    if (entry.at("handler").text().starts_with("nvidia"))
      classes.push_back(entry.at("metadata").at("name").text());
  }
  const auto containerd = read_containerd(f);
  if (!containerd.installed) return skip("no containerd on this machine");
  const std::vector<Evidence> read{
      {"RuntimeClass with handler nvidia", classes.empty() ? "(none)" : join_names(classes)},
      {"containerd's runtimes", containerd.has_nvidia ? "nvidia" : "no nvidia"}};
  if (!classes.empty() && !containerd.has_nvidia)
    return fail(fmt::format("pods with runtime class {} cannot start here: containerd has no "
                            "such runtime",
                            classes.front()),
                read)
        .advise(
            "sudo gantry runtime configure --runtime=containerd && sudo systemctl restart "
            "containerd");
  const bool needed = containerd.has_nvidia && containerd.default_runtime != "nvidia" &&
                      !(containerd.cdi && has_cdi(f));
  if (classes.empty() && needed)
    return warn("GPUs need the runtime nvidia here, but no runtime class selects it", read);
  return ok(classes.empty() ? "no runtime class is needed" : "runtime class and engine agree",
            read);
}

Finding judge_taints(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  if (node.spec().at("unschedulable").is_true())
    return warn("the node is cordoned: no new pod is scheduled here",
                {node.evidence("spec.unschedulable", "true")})
        .advise("kubectl uncordon " + node.name);
  std::vector<std::string> taints;
  for (const auto& taint : node.spec().at("taints").items()) {
    const auto& key = taint.at("key").text();
    // Kubernetes' own taint for GPU nodes: with the admission plugin ExtendedResourceToleration, a
    // pod that requests the resource tolerates it.
    if (taint.at("effect").text() == "PreferNoSchedule" || key == "nvidia.com/gpu") continue;
    taints.push_back(
        fmt::format("{}={}:{}", key, taint.at("value").text(), taint.at("effect").text()));
  }
  const std::vector<Evidence> read{
      node.evidence("spec.taints", taints.empty() ? "none that matters" : join_names(taints))};
  if (!taints.empty())
    return info(fmt::format("only pods with a toleration can run here: {}", join_names(taints)),
                read);
  return ok("pods can be scheduled to this node", read);
}

Finding judge_labels(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  std::vector<Evidence> read;
  std::vector<std::string> paused;
  for (const auto& [key, value] : node.object.at("metadata").at("labels").members()) {
    if (!key.starts_with("nvidia.com/gpu.deploy.") || !contains(value.text(), "paused")) continue;
    paused.push_back(key);
    read.push_back(node.evidence("label " + key, value.text()));
  }
  if (!paused.empty())
    return warn(fmt::format("components of the GPU operator are paused here: {}",
                            join_names(paused)),
                read)
        .because(
            "An upgrade or a MIG change paused them and did not resume them: their pods are not "
            "scheduled.")
        .advise(fmt::format("kubectl label node {} --overwrite {}=true", node.name,
                            fmt::join(paused, "=true ")));
  const auto& count = node.label("nvidia.com/gpu.count");
  const auto gpus = f.inventory().gpus.size();
  if (count.empty()) {
    const bool offers = counted(node, "capacity").value != "no nvidia.com/...";
    read.push_back(node.evidence("label nvidia.com/gpu.count", "(absent)"));
    return offers ? info("the node has no labels for its GPUs", read)
                  : skip("the node offers no GPUs", read);
  }
  read.push_back(node.evidence("label nvidia.com/gpu.count", count));
  if (gpus > 0 && parse_u64(count).value_or(0) != gpus)
    return warn(fmt::format("the label says {} GPUs, the machine has {}", count, gpus), read);
  return ok("the node's labels match its GPUs", read);
}

Finding judge_upgrade(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  constexpr std::string_view kLabel = "nvidia.com/gpu-driver-upgrade-state";
  const auto& state = node.label(kLabel);
  if (state.empty()) return skip("no driver upgrade of the GPU operator");
  const std::vector<Evidence> read{node.evidence(fmt::format("label {}", kLabel), state)};
  if (state == "upgrade-done") return ok("the last driver upgrade is done", read);
  if (contains(state, "failed"))
    return fail(fmt::format("the driver upgrade failed: {}", state), read);
  return warn(fmt::format("a driver upgrade is in progress: {}", state), read);
}

Finding judge_mig_state(const Facts& f) {
  const auto node = read_node(f);
  if (!node.why.empty()) return skip(node.why);
  std::vector<Evidence> read;
  for (const auto* label : {"nvidia.com/mig.config.state", "nvidia.com/vgpu.config.state"}) {
    const auto& state = node.label(label);
    if (state.empty()) continue;
    read.push_back(node.evidence(fmt::format("label {}", label), state));
    if (state == "failed")
      return fail(fmt::format("{} is \"failed\"", label), read)
          .advise(fmt::format("kubectl -n gpu-operator logs -l app=nvidia-mig-manager; then apply "
                              "it again: kubectl label node {} --overwrite "
                              "nvidia.com/mig.config=all-disabled",
                              node.name));
    if (state != "success") return info(fmt::format("{} is {}", label, state), read);
  }
  if (read.empty()) return skip("no MIG or vGPU layout of the GPU operator");
  return ok("the requested layout is in place", read);
}

constexpr Check kClusterChecks[] = {
    {.id = "cluster.ready",
     .reference = "K1",
     .area = Area::Kubelet,
     .title = "the API server sees this node as ready",
     .reads = "Node: condition Ready",
     .cause = "The kubelet is down, its certificate is not valid, or its network is down.",
     .remedy = "sudo systemctl restart kubelet; journalctl -u kubelet -n 50",
     .judge = judge_ready},
    {.id = "cluster.capacity",
     .reference = "K1",
     .area = Area::Kubelet,
     .title = "the node offers its GPUs to the cluster",
     .reads = "Node: status.capacity",
     .cause = "No device plugin is registered with the kubelet: pods stay Pending with "
              "\"Insufficient nvidia.com/gpu\".",
     .remedy = "systemctl status gantry-agent; gantry doctor --only 'kubelet.*'",
     .judge = judge_capacity},
    {.id = "cluster.allocatable",
     .reference = "K1",
     .area = Area::Kubelet,
     .title = "everything that the node offers can be used",
     .reads = "Node: status.capacity, status.allocatable, condition GPUsHealthy",
     .cause = "A GPU is unhealthy, or the plugin that offered it is gone.",
     .remedy = "gantry doctor --only 'gpu.*','log.*','kubelet.*'",
     .judge = judge_allocatable},
    {.id = "cluster.runtime-class",
     .reference = "K6",
     .area = Area::Kubelet,
     .title = "runtime class and engine agree",
     .reads = "RuntimeClass objects, /etc/containerd/config.toml and its imports",
     .cause = "A RuntimeClass names a runtime that the engine does not have, or the engine has a "
              "runtime without a RuntimeClass: \"no runtime for nvidia is configured\".",
     .remedy = "kubectl create -f - <<< '{\"apiVersion\":\"node.k8s.io/v1\",\"kind\":"
               "\"RuntimeClass\",\"metadata\":{\"name\":\"nvidia\"},\"handler\":\"nvidia\"}'",
     .judge = judge_runtime_class},
    {.id = "cluster.taints",
     .reference = "K6",
     .area = Area::Kubelet,
     .title = "pods can be scheduled to this node",
     .reads = "Node: spec.taints, spec.unschedulable",
     .cause = "A taint keeps pods without a toleration away; a cordon keeps all new pods away.",
     .remedy =
         "add tolerations to the pods and to the agent's DaemonSet, or remove the taint: kubectl "
         "taint node",
     .judge = judge_taints},
    {.id = "cluster.labels",
     .reference = "K7",
     .area = Area::Kubelet,
     .title = "the node's labels match its GPUs",
     .reads = "Node: labels nvidia.com/gpu.count, nvidia.com/gpu.deploy.*",
     .cause = "No feature discovery runs here, or the machine changed and an old label stayed.",
     .remedy = "systemctl status gantry-agent; curl -s localhost:9400/readyz",
     .judge = judge_labels},
    {.id = "cluster.upgrade",
     .reference = "K11",
     .area = Area::Kubelet,
     .title = "no driver upgrade is stuck",
     .reads = "Node: label nvidia.com/gpu-driver-upgrade-state",
     .cause = "A pod that cannot be evicted, or a program that uses the driver, blocks the "
              "upgrade; the node stays cordoned.",
     .remedy = "kubectl -n gpu-operator get pods -o wide; sudo fuser -v /dev/nvidia*",
     .judge = judge_upgrade},
    {.id = "cluster.mig-state",
     .reference = "K12",
     .area = Area::Kubelet,
     .title = "the requested MIG or vGPU layout is in place",
     .reads = "Node: labels nvidia.com/mig.config.state, nvidia.com/vgpu.config.state",
     .cause = "GPUs were in use when the layout should change, or the card does not support it.",
     .remedy = "kubectl -n gpu-operator logs -l app=nvidia-mig-manager",
     .judge = judge_mig_state},
};

}  // namespace

std::span<const Check> cluster_checks() {
  return kClusterChecks;
}

}  // namespace gantry::doctor
