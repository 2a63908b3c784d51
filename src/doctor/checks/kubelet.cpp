// SPDX-License-Identifier: Apache-2.0
// The kubelet's view of the GPUs, as far as it can be read from files of this machine.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

namespace gantry::doctor {
namespace {

constexpr std::string_view kDirectory = "/var/lib/kubelet/device-plugins";
constexpr std::string_view kKubeletSocket = "/var/lib/kubelet/device-plugins/kubelet.sock";
constexpr std::string_view kCheckpoint =
    "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
constexpr std::string_view kNoKubelet = "no kubelet on this machine";

bool has_kubelet(const Facts& f) {
  return f.host().exists("/var/lib/kubelet/config.yaml") || f.host().exists(kDirectory);
}

Finding judge_socket(const Facts& f) {
  if (!has_kubelet(f)) return skip(std::string(kNoKubelet));
  const bool there = f.host().exists(kKubeletSocket);
  const std::vector<Evidence> read{{std::string(kKubeletSocket), there ? "present" : "(absent)"}};
  if (there) return ok("the kubelet accepts device plugins", read);
  return fail("the kubelet does not accept device plugins: its socket is missing", read);
}

Steps fix_socket(const Facts& f) {
  return systemctl(f, {"restart"}, "kubelet");
}

Result<Document> checkpoint(const Facts& f) {
  GANTRY_TRY(const std::string text, f.host().read(kCheckpoint, kMaxDocumentBytes));
  return parse_json(text);
}

std::vector<std::string> registered(const Document& data) {
  std::vector<std::string> names;
  for (const auto& [name, ids] : data.at("RegisteredDevices").members()) {
    if (name.starts_with("nvidia.com/") && !ids.items().empty()) names.push_back(name);
  }
  return names;
}

Finding judge_plugin(const Facts& f) {
  if (!has_kubelet(f)) return skip(std::string(kNoKubelet));
  const auto names = f.host().list(kDirectory);
  std::string socket;
  if (names.ok()) {
    for (const auto& name : *names) {
      const bool ours = name.starts_with("nvidia") || name.starts_with("gantry");
      if (ours && name.ends_with(".sock")) socket = name;
    }
  }
  const auto data = checkpoint(f);
  const auto resources = data.ok() ? registered(data->at("Data")) : std::vector<std::string>{};
  const std::vector<Evidence> read{
      {std::string(kDirectory), socket.empty() ? "no plugin's socket" : socket},
      {std::string(kCheckpoint), resources.empty() ? "no nvidia.com resource" : resources.front()}};
  if (socket.empty()) return info("no GPU device plugin runs here", read);
  if (resources.empty()) {
    return warn("a plugin's socket exists, but the kubelet knows no GPU", read);
  }
  return ok(fmt::format("the kubelet offers {}", resources.front()), read);
}

std::set<std::string> known_ids(const Facts& f) {
  std::set<std::string> ids;
  for (const auto& gpu : f.inventory().gpus) {
    ids.insert(gpu.uuid.text);
    ids.insert(fmt::to_string(gpu.index));
    for (const auto& instance : gpu.mig.instances) ids.insert(instance.uuid.text);
  }
  return ids;
}

// Kubelets since 1.20 group the ids by NUMA node; older ones have a plain list.
std::vector<std::string> ids_of(const Document& entry) {
  std::vector<std::string> ids;
  const auto take = [&](const Document& list) {
    for (const auto& id : list.items()) {
      // Shared GPUs are "UUID::REPLICA".
      ids.push_back(id.text().substr(0, id.text().find("::")));
    }
  };
  take(entry.at("DeviceIDs"));
  for (const auto& [node, list] : entry.at("DeviceIDs").members()) take(list);
  return ids;
}

Finding judge_checkpoint(const Facts& f) {
  if (!f.host().exists(kCheckpoint)) return skip("the kubelet has no device checkpoint");
  const auto document = checkpoint(f);
  if (!document.ok()) {
    return fail("the kubelet's device checkpoint is damaged",
                {{std::string(kCheckpoint), document.error().text()}})
        .advise(fmt::format("sudo rm {} && sudo systemctl restart kubelet", kCheckpoint));
  }
  if (f.inventory().gpus.empty()) return skip("the GPUs are not known: see module.loaded");
  const auto known = known_ids(f);
  Tally tally;
  for (const auto& entry : document->at("Data").at("PodDeviceEntries").items()) {
    if (!entry.at("ResourceName").text().starts_with("nvidia.com/")) continue;
    for (const auto& id : ids_of(entry)) {
      const bool full = id.starts_with("GPU-") || id.starts_with("MIG-");
      if (!full || known.contains(id)) continue;
      const auto& pod = entry.at("PodUID").text();
      tally.found(fmt::format("{} by pod {}", id, pod), {std::string(kCheckpoint), id}, pod);
    }
  }
  if (tally.any_bad()) {
    return fail(fmt::format("allocated, but not on this machine: {}", tally.who()), tally.bad)
        .advise(
            tally.command("kubectl get pods -A -o "
                          "custom-columns=U:.metadata.uid,N:.metadata.namespace,P:.metadata.name "
                          "| grep @") +
            "  # delete these pods with kubectl, then: sudo systemctl restart kubelet");
  }
  return ok("every GPU that is allocated to a pod exists",
            {{std::string(kCheckpoint), "every GPU exists"}});
}

// Compares the other half of the checkpoint, the registered devices, with the machine.
Finding judge_registered(const Facts& f) {
  const auto document = checkpoint(f);
  if (!document.ok()) return skip("the kubelet has no readable device checkpoint");
  if (f.inventory().gpus.empty()) return skip("the GPUs are not known: see module.loaded");
  const auto known = known_ids(f);
  std::set<std::string> offered;
  Tally tally;
  for (const auto& [name, ids] : document->at("Data").at("RegisteredDevices").members()) {
    if (!name.starts_with("nvidia.com/")) continue;
    for (const auto& item : ids.items()) {
      const auto id = item.text().substr(0, item.text().find("::"));
      offered.insert(id);
      const bool full = id.starts_with("GPU-") || id.starts_with("MIG-");
      if (full && !known.contains(id))
        tally.found(fmt::format("{} of {}", id, name), {std::string(kCheckpoint), id});
    }
  }
  if (tally.any_bad())
    return warn(fmt::format("registered, but not on this machine: {}", tally.who()), tally.bad);
  if (offered.empty()) return skip("no plugin has registered GPUs: see kubelet.plugin");
  std::vector<std::string> left_out;
  for (const auto& gpu : f.inventory().gpus) {
    const bool parts = gpu.mig.current == model::MigMode::Enabled;
    const bool there =
        offered.contains(gpu.uuid.text) || offered.contains(fmt::to_string(gpu.index));
    if (!parts && !there) left_out.push_back(gpu_label(gpu));
  }
  const std::vector<Evidence> read{
      {std::string(kCheckpoint), fmt::format("{} devices registered", offered.size())}};
  if (!left_out.empty())
    return info(fmt::format("not offered to the kubelet, or not healthy: {}", join_names(left_out)),
                read);
  return ok("the kubelet knows every GPU of this machine", read);
}

Steps fix_checkpoint(const Facts&) {
  return {RunProgram{{"systemctl", "restart", "kubelet"}}};
}

Finding judge_topology(const Facts& f) {
  const auto text = f.host().read("/var/lib/kubelet/config.yaml");
  if (!text.ok()) return skip(std::string(kNoKubelet));
  const auto policy = parse_yaml(*text).value_or({}).at("topologyManagerPolicy").text();
  std::vector<Evidence> read{{"/var/lib/kubelet/config.yaml",
                              "topologyManagerPolicy: " + (policy.empty() ? "none" : policy)}};
  if (policy != "single-numa-node" && policy != "restricted") {
    return ok("the kubelet does not require NUMA alignment", read);
  }
  std::vector<std::string> unknown;
  for (const auto& gpu : f.inventory().gpus) {
    if (gpu.numa_node) continue;
    read.push_back({pci_path(gpu.pci) + "/numa_node", "-1"});
    unknown.push_back(gpu_label(gpu));
  }
  if (!unknown.empty()) {
    return warn(
        fmt::format("the kubelet requires NUMA alignment, but the NUMA node is unknown for {}",
                    join_names(unknown)),
        read);
  }
  return ok("every GPU has the NUMA node that the kubelet requires", read);
}

Finding judge_podresources(const Facts& f) {
  if (!has_kubelet(f)) return skip(std::string(kNoKubelet));
  constexpr std::string_view kPath = "/var/lib/kubelet/pod-resources/kubelet.sock";
  const bool there = f.host().exists(kPath);
  const std::vector<Evidence> read{{std::string(kPath), there ? "present" : "(absent)"}};
  if (there) return ok("the kubelet reports which pod has which GPU", read);
  return warn("the kubelet does not report which pod has which GPU", read);
}

Finding judge_validations(const Facts& f) {
  constexpr std::string_view kValidations = "/run/nvidia/validations";
  constexpr std::array kChain{"driver-ready", "toolkit-ready", "cuda-ready", "plugin-ready"};
  if (!f.host().exists(kValidations)) return skip("no GPU operator on this node");
  std::vector<Evidence> read;
  for (std::string_view name : kChain) {
    const auto path = fmt::format("{}/{}", kValidations, name);
    const bool there = f.host().exists(path);
    read.push_back({path, there ? "present" : "(absent)"});
    if (!there) return warn(fmt::format("the GPU operator stopped before {}", name), read);
  }
  return ok("the GPU operator's validation is complete", read);
}

constexpr Check kKubeletChecks[] = {
    {.id = "kubelet.socket",
     .reference = "K3",
     .area = Area::Kubelet,
     .fix_class = FixClass::Automatic,
     .title = "the kubelet accepts device plugins",
     .reads = "/var/lib/kubelet/device-plugins/kubelet.sock",
     .cause = "The kubelet is down, or the directory was cleared while it ran.",
     .remedy = "sudo systemctl restart kubelet",
     .judge = judge_socket,
     .fix = fix_socket,
     .by_hand = "systemd has no kubelet unit here (k3s, rke2, kind): restart k3s, rke2 or kind",
     .closed = kDirectory},
    {.id = "kubelet.plugin",
     .reference = "K1",
     .area = Area::Kubelet,
     .title = "a device plugin is registered",
     .reads = "/var/lib/kubelet/device-plugins",
     .cause =
         "The plugin is not installed, crashed, or did not register again after the kubelet was "
         "restarted: pods stay Pending with \"Insufficient nvidia.com/gpu\".",
     .remedy = "kubectl -n kube-system get pods -o wide | grep -i nvidia; kubectl -n kube-system "
               "rollout restart daemonset nvidia-device-plugin-daemonset",
     .judge = judge_plugin,
     .closed = kDirectory},
    {.id = "kubelet.checkpoint",
     .reference = "K4",
     .area = Area::Kubelet,
     .fix_class = FixClass::OnRequest,
     .title = "GPUs that are allocated to pods exist",
     .reads = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
     .cause = "A GPU was swapped or MIG changed under running pods: \"UnexpectedAdmissionError: no "
              "healthy devices present\".",
     .remedy = "kubectl delete pod POD; sudo systemctl restart kubelet",
     .judge = judge_checkpoint,
     .fix = fix_checkpoint,
     .closed = kDirectory},
    {.id = "kubelet.registered",
     .reference = "K1",
     .area = Area::Kubelet,
     .title = "the kubelet knows the GPUs of this machine",
     .reads = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
     .cause = "The plugin has not noticed a change of the machine, its configuration leaves GPUs "
              "out, or it considers them unhealthy.",
     .remedy = "sudo systemctl restart gantry-agent; curl -s localhost:9400/readyz",
     .judge = judge_registered,
     .closed = kDirectory},
    {.id = "kubelet.topology",
     .reference = "K9",
     .area = Area::Kubelet,
     .title = "the kubelet's topology policy can be met",
     .reads = "/var/lib/kubelet/config.yaml, numa_node of the GPUs",
     .cause = "A strict topology policy and GPUs with NUMA node -1: pods fail with "
              "TopologyAffinityError when a plugin turns -1 into node 0.",
     .remedy = "fix numa.unknown first, or set topologyManagerPolicy: best-effort and restart the "
               "kubelet",
     .judge = judge_topology,
     .closed = "/var/lib/kubelet/config.yaml"},
    {.id = "kubelet.podresources",
     .reference = "K10",
     .area = Area::Kubelet,
     .title = "the kubelet reports which pod has which GPU",
     .reads = "/var/lib/kubelet/pod-resources/kubelet.sock",
     .cause =
         "The podresources service is off (old kubelet, feature gate): metrics have no pod names.",
     .remedy = "sudo systemctl restart kubelet; journalctl -u kubelet | grep -i podresources",
     .judge = judge_podresources,
     .closed = "/var/lib/kubelet/pod-resources"},
    {.id = "kubelet.validations",
     .reference = "K8",
     .area = Area::Kubelet,
     .title = "the GPU operator's validation is complete",
     .reads = "/run/nvidia/validations",
     .cause = "An earlier stage failed; all later stages wait in Init:0/1.",
     .remedy = "kubectl -n gpu-operator logs -l app=nvidia-operator-validator --all-containers",
     .judge = judge_validations},
};

}  // namespace

std::span<const Check> kubelet_checks() {
  return kKubeletChecks;
}

}  // namespace gantry::doctor
