// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/infrastructure.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace gantry::explain {
namespace {

// Parts of names of containers, images and programs.
constexpr std::array<std::string_view, 14> kGpuServices{
    "device-plugin",      "nvidia-plugin",    "gpu-feature-discovery", "dcgm-exporter",
    "driver-install",     "nvidia-driver",    "nvidia-installer",      "mig-manager",
    "mps-control-daemon", "nvidia-validator", "vgpu-manager",          "container-toolkit",
    "gpu-operator",       "kubelet-plugin"};
constexpr std::array<std::string_view, 5> kSchedulers{
    "kube-scheduler", "schd-extender", "scheduler-extender", "hami-scheduler", "volcano-scheduler"};
constexpr std::array<std::string_view, 3> kGantryDaemons{"agent", "scheduler", "operator"};
// Directories of a kubelet, wherever it has its root.
constexpr std::array<std::string_view, 4> kKubeletPlaces{
    "kubelet/device-plugins", "kubelet/plugins", "kubelet/pod-resources", "/var/lib/kubelet"};
// Of the host, with everything below: a DaemonSet that mounts one of them manages the node.
constexpr std::array<std::string_view, 4> kHostPlaces{"/dev", "/sys", "/proc", "/run/nvidia"};

template <class List>
bool mentions(const List& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view part) { return contains(text, part); });
}

std::vector<std::string> host_paths(json::Value pod) {
  std::vector<std::string> paths;
  for (const auto volume : pod["spec"]["volumes"]) {
    if (auto path = volume["hostPath"]["path"].string()) paths.push_back(*std::move(path));
  }
  return paths;
}

bool manages_host(std::string_view path) {
  if (path == "/" || contains(path, "nvidia")) return true;
  return std::any_of(kHostPlaces.begin(), kHostPlaces.end(), [&](std::string_view place) {
    return path == place || (path.starts_with(place) && path[place.size()] == '/');
  });
}

// "gantry agent", however it is started: by command, by args, by the image's entry point.
bool is_gantry_daemon(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (base_name(words[i]) == "gantry" && std::find(kGantryDaemons.begin(), kGantryDaemons.end(),
                                                     words[i + 1]) != kGantryDaemons.end())
      return true;
  }
  return false;
}

// The name by which a container is known as a service of GPU nodes or a scheduler; "" if it is
// neither.
std::string service_name(json::Value container, bool schedulers_too) {
  auto words = container["command"].strings();
  for (auto& word : container["args"].strings()) words.push_back(std::move(word));
  if (is_gantry_daemon(words)) return "gantry";
  std::vector<std::string> names{container["name"].string_or_empty(),
                                 std::string(base_name(container["image"].string_or_empty()))};
  if (!words.empty()) names.emplace_back(base_name(words.front()));
  for (auto& name : names) {
    if (mentions(kGpuServices, name) || (schedulers_too && mentions(kSchedulers, name)))
      return std::move(name);
  }
  return "";
}

std::string service_of(json::Value pod, bool schedulers_too) {
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto container : pod["spec"][list]) {
      if (auto name = service_name(container, schedulers_too); !name.empty()) return name;
    }
  }
  return "";
}

}  // namespace

std::string infrastructure_reason(json::Value pod, std::string_view kind) {
  for (const auto& path : host_paths(pod)) {
    if (mentions(kKubeletPlaces, path) || (kind == "DaemonSet" && manages_host(path)))
      return fmt::format("it mounts {} of its node", path);
  }
  if (auto name = service_of(pod, true); !name.empty()) return fmt::format("it runs {}", name);
  const auto priority = pod["spec"]["priorityClassName"].string_or_empty();
  if (priority == "system-node-critical" || priority == "system-cluster-critical")
    return fmt::format("its priority is {}", priority);
  return "";
}

bool serves_gpus(json::Value pod) {
  const auto paths = host_paths(pod);
  return std::any_of(paths.begin(), paths.end(),
                     [](const std::string& path) {
                       return contains(path, "kubelet/device-plugins") || contains(path, "nvidia");
                     }) ||
         !service_of(pod, false).empty();
}

std::string creator_kind(json::Value pod) {
  for (const auto owner : pod["metadata"]["ownerReferences"]) {
    if (owner["controller"].boolean() == true) return owner["kind"].string_or_empty();
  }
  return "";
}

}  // namespace gantry::explain
