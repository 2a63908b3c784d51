// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "cluster/webhook/containers_internal.hpp"

#include <algorithm>
#include <array>

namespace gantry::webhook {

std::string Place::name() const {
  return printable(container["name"].string().value_or("").substr(0, 64));
}

std::vector<Place> containers_of(const json::Value& pod) {
  std::vector<Place> places;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const auto containers = pod["spec"][list];
    if (!containers.is(json::Kind::Array)) continue;
    std::size_t number = 0;
    for (const auto container : containers) places.push_back({list, number++, container});
  }
  return places;
}

bool is_gpu_resource(std::string_view name) {
  static constexpr std::array kNames = {
      podspec::kGpuMem,           podspec::kGpuCount, podspec::kGpu,         podspec::kGpuMemory,
      podspec::kGpuMemoryPercent, podspec::kGpuCores, podspec::kGpuPriority, podspec::kSlot,
      podspec::kLegacyGpu};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool mentions_gpus(const json::Value& pod) {
  const auto places = containers_of(pod);
  return std::any_of(places.begin(), places.end(), [](const Place& place) {
    const auto resources = place.container["resources"];
    for (const std::string_view list : {"limits", "requests"}) {
      for (const auto member : resources[list]) {
        if (is_gpu_resource(member.key())) return true;
      }
    }
    return false;
  });
}

}  // namespace gantry::webhook
