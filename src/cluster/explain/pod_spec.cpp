// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/infrastructure.hpp"
#include "cluster/explain/pod_limits.hpp"
#include "cluster/explain/pod_steps.hpp"
#include "cluster/explain/share_steps.hpp"
#include "cluster/explain/spec_faults.hpp"
#include "cluster/podspec/quantity.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::explain {
namespace {

constexpr std::string_view kPrefix = "nvidia.com/";

// Directories of the host's driver that old manifests mount.
constexpr std::array<std::string_view, 6> kDriverPlaces{"/usr/lib/nvidia",
                                                        "/usr/local/nvidia",
                                                        "/var/lib/nvidia",
                                                        "/home/kubernetes/bin/nvidia",
                                                        "/usr/lib/x86_64-linux-gnu/libcuda",
                                                        "/dev/nvidia"};

// Resources that say how much of a GPU is needed, not how many: no kubelet offers them.
bool says_how_much(std::string_view name) {
  return name == podspec::kHamiGpuMem || name == podspec::kHamiGpuMemPercentage ||
         name == podspec::kHamiGpuCores || name == podspec::kHamiPriority;
}

bool is_counted(std::string_view name) {
  return name == podspec::kAliyunGpuMem || name == podspec::kShareSlot || counts_devices(name);
}

std::optional<Step> mounts_step(json::Value pod) {
  for (const auto volume : pod["spec"]["volumes"]) {
    const auto path = volume["hostPath"]["path"].string().value_or("");
    const bool driver =
        std::any_of(kDriverPlaces.begin(), kDriverPlaces.end(),
                    [&](std::string_view place) { return path.starts_with(place); });
    if (!driver) continue;
    return Step{
        .id = "spec.driver-mounts",
        .what = "No host driver mounted by hand",
        .verdict = StepStatus::Warning,
        .read = fmt::format("volume {}: hostPath {}", volume["name"].string().value_or("?"), path),
        .cause =
            "the pod mounts the host's driver itself: after a driver upgrade these files no longer "
            "match the kernel module; the mount is not needed",
        .remedy = "remove the volume and its mounts from the manifest"};
  }
  return std::nullopt;
}

// The environment of a container overrides what a plugin sets.
std::optional<Step> visible_link(json::Value pod) {
  for (const auto container : pod["spec"]["containers"]) {
    for (const auto entry : container["env"]) {
      if (entry["name"].string() != "NVIDIA_VISIBLE_DEVICES") continue;
      return Step{.id = "spec.visible-devices",
                  .what = "The kubelet chooses the GPUs",
                  .verdict = StepStatus::Warning,
                  .read = fmt::format("container {}: NVIDIA_VISIBLE_DEVICES={}",
                                      container["name"].string().value_or("?"),
                                      entry["value"].string().value_or("")),
                  .cause =
                      "the pod sets NVIDIA_VISIBLE_DEVICES itself: if a runtime reads it, the pod "
                      "gets other GPUs than the kubelet allocated, or none",
                  .remedy = "remove NVIDIA_VISIBLE_DEVICES from the pod's env"};
    }
  }
  return std::nullopt;
}

// A running pod shows that its node offers what it names.
bool is_placed(json::Value pod) {
  const auto phase = pod["status"]["phase"].string_or_empty();
  return !phase.empty() && phase != "Pending";
}

std::optional<Step> infrastructure_step(json::Value pod, const SpecContext& context) {
  if (!requested_devices(pod).empty() || name_fault(pod)) return std::nullopt;
  const auto reason =
      infrastructure_reason(pod, context.kind.empty() ? creator_kind(pod) : context.kind);
  if (reason.empty()) return std::nullopt;
  return Step{.id = "spec.infrastructure",
              .what = "It needs no GPU of its own",
              .read = fmt::format("it serves the cluster: {}", reason)};
}

}  // namespace

bool counts_devices(std::string_view name) {
  return name.starts_with(kPrefix) && !says_how_much(name);
}

std::int64_t device_count(json::Value quantity) {
  constexpr std::uint64_t kMaxAmount =
      1'000'000'000;  // so that sums of a hostile pod do not overflow
  const auto read = podspec::read_quantity(quantity);
  if (!read.ok() || !read->whole()) return 0;
  return static_cast<std::int64_t>(std::min(read->value, kMaxAmount));
}

RequestedDevices gpu_limits(json::Value container) {
  RequestedDevices wanted;
  bool part = false;
  for (const auto limit : container["resources"]["limits"]) {
    const auto name = limit.key();
    part = part || says_how_much(name);
    if (is_counted(name)) wanted[name] += device_count(limit);
  }
  // An amount of a GPU without a number of GPUs means one GPU.
  if (part && !wanted.contains(std::string(podspec::kNvidiaGpu)))
    wanted[std::string(podspec::kNvidiaGpu)] = 1;
  return wanted;
}

RequestedDevices requested_devices(json::Value pod) {
  RequestedDevices sum;
  for (const auto container : pod["spec"]["containers"]) {
    for (const auto& [name, count] : gpu_limits(container)) sum[name] += count;
  }
  for (const auto container : pod["spec"]["initContainers"]) {
    for (const auto& [name, count] : gpu_limits(container)) {
      // A sidecar keeps its devices in addition to the others. An init container passes its devices
      // on.
      const bool sidecar = container["restartPolicy"].string() == "Always";
      sum[name] = sidecar ? sum[name] + count : std::max(sum[name], count);
    }
  }
  return sum;
}

std::vector<Step> spec_steps(json::Value pod, const SpecContext& context) {
  if (auto step = infrastructure_step(pod, context)) return {*std::move(step)};
  std::vector<Step> steps;
  const auto ask = podspec::parse_request(pod);
  auto name = is_placed(pod) ? std::nullopt : name_fault(pod);
  auto fault = quantity_fault(pod);
  if (!fault && name && name->verdict == StepStatus::Failed) fault = std::exchange(name, {});
  if (!fault) fault = misplaced_fault(context.object ? context.object : pod);
  // A quantity that cannot be read is not counted: any number would be invented.
  if (fault) {
    steps.push_back(*std::move(fault));
  } else if (!ask.ok()) {
    steps.push_back(request_step(ask));
  } else {
    steps.push_back(limits_step(pod, context));
  }
  if (ask.ok() && *ask && (*ask)->shared()) steps.push_back(request_step(ask));
  for (auto& step : {std::move(name), runtime_fault(pod), mounts_step(pod), visible_link(pod)}) {
    if (step) steps.push_back(*step);
  }
  return steps;
}

}  // namespace gantry::explain
