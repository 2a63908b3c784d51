// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/pod_limits.hpp"

#include "base/core/text.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/podspec/resource_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::explain {
namespace {

constexpr std::string_view kAnyDevice = "nvidia.com/";  // every resource that counts_devices()

std::string describe_devices(const RequestedDevices& wanted) {
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
        const bool fits = resource == kAnyDevice ? counts_devices(name) : name == resource;
        if (fits) return entry.string().value_or(std::string(entry.raw()));
      }
    }
  }
  return "";
}

// A container that keeps its devices while the pod runs: init containers give them back.
bool stays(json::Value container, std::string_view list) {
  return list == "containers" || container["restartPolicy"].string() == "Always";
}

bool asks(const RequestedDevices& wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [](const auto& resource) { return resource.second != 0; });
}

// If only init containers ask: the first of them.
std::optional<Step> init_only_step(json::Value pod) {
  std::string init;
  RequestedDevices wanted;
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto container : pod["spec"][list]) {
      auto limits = gpu_limits(container);
      if (!asks(limits)) continue;
      if (stays(container, list)) return std::nullopt;
      if (!init.empty()) continue;
      init = container["name"].string().value_or("?");
      wanted = std::move(limits);
    }
  }
  if (init.empty()) return std::nullopt;
  return Step{
      .id = "spec.limits",
      .what = "The pod asks for GPUs",
      .verdict = StepStatus::Failed,
      .read = fmt::format("init container {}: {}", init, describe_devices(wanted)),
      .cause = fmt::format("only init container {} asks for GPUs: it gives them back before the "
                           "pod's containers start, and those get none",
                           init),
      .remedy =
          "write the limit at the container that computes: resources: {limits: "
          "{nvidia.com/gpu: 1}}"};
}

// Requests in ways that this command does not follow further.
std::optional<Step> foreign_step(json::Value pod) {
  Step step{.id = "spec.limits", .what = "The pod asks for GPUs", .verdict = StepStatus::Unknown};
  if (pod["spec"]["resourceClaims"].size() > 0) {
    step.read = "by resource claims; kubectl get resourceclaims shows what they got";
    return step;
  }
  for (const auto container : pod["spec"]["containers"]) {
    for (const auto limit : container["resources"]["limits"]) {
      const auto name = limit.key();
      if (!contains(name, "/") || !contains(name.substr(name.find('/')), "gpu")) continue;
      if (podspec::classify_resource(name).kind != podspec::ResourceClass::Other) continue;
      step.read = fmt::format("{}, which is not a GPU of NVIDIA", name);
      return step;
    }
  }
  return std::nullopt;
}

// Whether the pod looks as if it should compute on a GPU.
bool looks_like_gpu_work(json::Value pod) {
  const auto hints = [](std::string_view text) {
    const auto lower = to_lower(text);
    return contains(lower, "cuda") || contains(lower, "gpu") || contains(lower, "nvidia");
  };
  const auto spec = pod["spec"];
  for (const auto container : spec["containers"]) {
    if (hints(container["image"].string_or_empty())) return true;
    for (const auto variable : container["env"]) {
      if (hints(variable["name"].string_or_empty())) return true;
    }
  }
  for (const auto toleration : spec["tolerations"]) {
    if (hints(toleration["key"].string_or_empty())) return true;
  }
  for (const auto label : spec["nodeSelector"]) {
    if (hints(label.key())) return true;
  }
  return hints(spec["runtimeClassName"].string_or_empty());
}

// A pod without a GPU beside pods that ask for one: the head of a RayCluster, a launcher, a page.
Step other_pods_step(json::Value pod) {
  Step step{.id = "spec.limits",
            .what = "The pod asks for GPUs",
            .read = "none; other pods of the manifest ask for GPUs"};
  if (!looks_like_gpu_work(pod)) return step;
  step.verdict = StepStatus::Warning;
  step.cause = "it gets no GPU, although its image or its settings name one";
  step.remedy = "if it needs one, add to its container: resources: {limits: {nvidia.com/gpu: 1}}";
  return step;
}

Step no_limits_step(json::Value pod) {
  Step step{.id = "spec.limits",
            .what = "The pod asks for GPUs",
            .verdict = StepStatus::Failed,
            .read = "no nvidia.com/... or aliyun.com/gpu-mem in resources.limits",
            .remedy = "add to the container: resources: {limits: {nvidia.com/gpu: 1}}"};
  if (const auto legacy = quantity(pod, "limits", podspec::kAlphaNvidiaGpu); !legacy.empty()) {
    step.read = fmt::format("{}: {}", podspec::kAlphaNvidiaGpu, legacy);
    step.cause =
        fmt::format("{} is the old name of the resource, from 2017; no kubelet offers it any more",
                    podspec::kAlphaNvidiaGpu);
    step.remedy = fmt::format(
        "write nvidia.com/gpu: {} instead; the webhook of `gantry scheduler` does so automatically",
        legacy);
  } else if (!quantity(pod, "requests", kAnyDevice).empty()) {
    step.read = "nvidia.com/... in requests only";
    step.cause =
        "only limits count for GPUs; the API server rejects a request without an equal limit, "
        "unless the webhook of `gantry scheduler` adds the limit";
  } else {
    step.cause =
        "no container of the pod has an nvidia.com/... resource among its limits, so it gets "
        "no GPU, whatever NVIDIA_VISIBLE_DEVICES its image sets";
  }
  return step;
}

}  // namespace

Step limits_step(json::Value pod, const SpecContext& context) {
  const auto wanted = requested_devices(pod);
  if (auto init = init_only_step(pod)) return *std::move(init);
  Step step{.id = "spec.limits", .what = "The pod asks for GPUs", .read = describe_devices(wanted)};
  if (asks(wanted)) return step;
  if (!wanted.empty()) {
    step.verdict = StepStatus::Failed;
    step.cause = "the limit is 0: the pod gets no GPU";
    step.remedy = "write how many GPUs, or how much of a GPU, the pod needs";
    return step;
  }
  if (auto foreign = foreign_step(pod)) return *std::move(foreign);
  const bool means_gpu = !quantity(pod, "limits", podspec::kAlphaNvidiaGpu).empty() ||
                         !quantity(pod, "requests", kAnyDevice).empty();
  if (context.others_ask && !means_gpu) return other_pods_step(pod);
  return no_limits_step(pod);
}

}  // namespace gantry::explain
