// SPDX-License-Identifier: Apache-2.0
#include "base/core/nearest.hpp"
#include "base/core/printable.hpp"
#include "cluster/admission/containers_internal.hpp"
#include "cluster/podspec/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::admission {
namespace {

bool privileged(const json::Value& container) {
  return container["securityContext"]["privileged"].boolean().value_or(false);
}

bool zero(const json::Value& value) {
  auto quantity = podspec::read_quantity(value);
  return quantity.ok() && quantity->value == 0 && quantity->whole();
}

void warn_of_resources(const ContainerRef& place, std::vector<std::string>& warnings) {
  const auto limits = place.container["resources"]["limits"];
  const auto memory = limits[podspec::kHamiGpuMem];
  if (limits[podspec::kAliyunGpuCount] && !zero(limits[podspec::kAliyunGpuCount]))
    warnings.push_back(
        fmt::format("container \"{}\": Kubernetes counts {} as whole cards for this pod alone; "
                    "write it as a label of the pod, or use the annotation gantry.dev/gpus",
                    place.name(), podspec::kAliyunGpuCount));
  if (memory && zero(memory))
    warnings.push_back(
        fmt::format("container \"{}\": {}: 0 counts as not set: the container gets all memory",
                    place.name(), podspec::kHamiGpuMem));
  if (memory && !zero(memory) && limits[podspec::kHamiGpuMemPercentage])
    warnings.push_back(fmt::format("container \"{}\": {} is used, {} is ignored", place.name(),
                                   podspec::kHamiGpuMem, podspec::kHamiGpuMemPercentage));
}

void warn_of_environment(const ContainerRef& place, std::vector<std::string>& warnings) {
  for (const auto variable : place.container["env"]) {
    const auto name = variable["name"].string().value_or("");
    if (name != "NVIDIA_VISIBLE_DEVICES" && name != "CUDA_VISIBLE_DEVICES") continue;
    warnings.push_back(
        fmt::format("container \"{}\" sets {}, which may hide its GPUs from it; remove it",
                    place.name(), name));
  }
}

const podspec::ContainerRequest* asked(const podspec::PodRequest& ask,
                                       const json::Value& container) {
  const auto name = container["name"].string();
  const auto found =
      std::find_if(ask.containers.begin(), ask.containers.end(),
                   [&](const podspec::ContainerRequest& one) { return one.container == name; });
  return found == ask.containers.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> annotation_warnings(const json::Value& pod) {
  std::vector<std::string> warnings;
  const auto known = podspec::known_annotations();
  for (const auto member : pod["metadata"]["annotations"]) {
    const auto key = member.key();
    if (key == "hami.io/device-scoring-weights")
      warnings.push_back(fmt::format("annotation {} is ignored: GPUs are chosen by best fit", key));
    if (!key.starts_with("gantry.dev/") || key.size() > 128) continue;
    const auto is_known = [&](const std::string& name) {
      return key == name || key.starts_with(name + ".");
    };
    if (std::any_of(known.begin(), known.end(), is_known)) continue;
    const auto near = nearest_name(key, known);
    warnings.push_back(near.empty()
                           ? fmt::format("Gantry does not know annotation {}", printable(key))
                           : fmt::format("Gantry does not know annotation {}; did you mean {}?",
                                         printable(key), near));
  }
  return warnings;
}

void add_warnings(const json::Value& pod, const podspec::PodRequest& ask,
                  std::vector<std::string>& warnings) {
  for (const auto& place : containers_of(pod)) {
    if (privileged(place.container))
      warnings.push_back(fmt::format(
          "container \"{}\" is privileged and sees every GPU of its node", place.name()));
    const auto* one = asked(ask, place.container);
    if (one == nullptr) continue;
    warn_of_resources(place, warnings);
    warn_of_environment(place, warnings);
    if (one->cores == 100 && one->memory != podspec::Amount{})
      warnings.push_back(
          fmt::format("container \"{}\" has all of its GPU's time, so no other pod can use the "
                      "rest of the GPU's memory",
                      place.name()));
  }
  for (auto& warning : annotation_warnings(pod)) warnings.push_back(std::move(warning));
}

}  // namespace gantry::admission
