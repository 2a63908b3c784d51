// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/quantity.hpp"
#include "cluster/podspec/request.hpp"
#include "node/why/pod_steps.hpp"
#include "node/why/share_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::why {
namespace {

constexpr std::string_view kPrefix = "nvidia.com/";
constexpr std::string_view kLegacy = "alpha.kubernetes.io/nvidia-gpu";

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
  if (name == podspec::kAliyunGpuMem || name == podspec::kShareSlot) return true;
  return name.starts_with(kPrefix) && !says_how_much(name);
}

std::string shown(const RequestedDevices& wanted) {
  std::string text;
  for (const auto& [name, count] : wanted)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, count);
  return text;
}

// The text of the quantity of `resource` in limits or requests of any container; "" if there is
// none.
std::string quantity(json::Value pod, std::string_view where, std::string_view resource) {
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto container : pod["spec"][list]) {
      for (const auto entry : container["resources"][where]) {
        const auto name = entry.key();
        const bool fits = resource.ends_with('/')
                              ? name.starts_with(resource) && !says_how_much(name)
                              : name == resource;
        if (fits) return entry.string().value_or(std::string(entry.raw()));
      }
    }
  }
  return "";
}

Step limits_step(json::Value pod, const RequestedDevices& wanted) {
  Step step{.id = "spec.limits", .what = "The pod asks for GPUs", .read = shown(wanted)};
  const bool some = std::any_of(wanted.begin(), wanted.end(),
                                [](const auto& resource) { return resource.second != 0; });
  if (some) return step;
  step.verdict = StepStatus::Failed;
  if (!wanted.empty()) {
    step.cause = "the limit is 0: the pod gets no GPU";
    step.remedy = "write how many GPUs, or how much of a GPU, the pod needs";
    return step;
  }
  step.read = "no nvidia.com/... or aliyun.com/gpu-mem in resources.limits";
  step.remedy = "add to the container: resources: {limits: {nvidia.com/gpu: 1}}";
  if (const auto legacy = quantity(pod, "limits", kLegacy); !legacy.empty()) {
    step.read = fmt::format("{}: {}", kLegacy, legacy);
    step.cause = fmt::format(
        "{} is the old name of the resource, from 2017; no kubelet offers it any more", kLegacy);
    step.remedy = fmt::format(
        "write nvidia.com/gpu: {} instead; the webhook of `gantry scheduler` does so automatically",
        legacy);
  } else if (!quantity(pod, "requests", kPrefix).empty()) {
    step.read = "nvidia.com/... in requests only";
    step.cause = "only limits count for GPUs; a request alone gives no GPU";
  } else {
    step.cause =
        "no container of the pod has an nvidia.com/... resource among its limits, so it gets "
        "no GPU, whatever NVIDIA_VISIBLE_DEVICES its image sets";
  }
  return step;
}

std::optional<Step> fraction_link(json::Value pod) {
  const auto text = quantity(pod, "limits", kPrefix);
  const auto read = podspec::parse_quantity(text);
  if (text.empty() || (read.ok() && read->whole())) return std::nullopt;
  return Step{
      .id = "spec.fraction",
      .what = "Whole numbers of GPUs",
      .verdict = StepStatus::Failed,
      .read = text,
      .cause =
          "Kubernetes counts extended resources in whole numbers: you cannot ask for half a GPU "
          "this way",
      .remedy =
          "where GPUs are shared, write nvidia.com/gpu: 1 with nvidia.com/gpumem-percentage: 50 "
          "and nvidia.com/gpucores: 50, or aliyun.com/gpu-mem with a number of GiB; otherwise ask "
          "for 1 of a shared resource (nvidia.com/gpu.shared), or for a MIG profile "
          "(nvidia.com/mig-1g.10gb)"};
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

}  // namespace

std::int64_t device_count(json::Value quantity) {
  constexpr std::uint64_t kMost = 1'000'000'000;  // so that sums of a hostile pod do not overflow
  const auto read = podspec::read_quantity(quantity);
  if (!read.ok() || !read->whole()) return 0;
  return static_cast<std::int64_t>(std::min(read->value, kMost));
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

std::vector<Step> spec_steps(json::Value pod) {
  std::vector<Step> steps;
  auto fraction = fraction_link(pod);
  const auto ask = podspec::parse_request(pod);
  // A quantity that cannot be read is not counted: any number would be invented.
  if (fraction) {
    steps.push_back(*std::move(fraction));
  } else if (!ask.ok()) {
    steps.push_back(request_step(ask));
  } else {
    steps.push_back(limits_step(pod, requested_devices(pod)));
  }
  if (ask.ok() && *ask && (*ask)->shared()) steps.push_back(request_step(ask));
  if (auto mounts = mounts_step(pod)) steps.push_back(*std::move(mounts));
  if (auto visible = visible_link(pod)) steps.push_back(*std::move(visible));
  return steps;
}

}  // namespace gantry::why
