// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "cluster/admission/containers_internal.hpp"

#include <algorithm>
#include <array>

namespace gantry::admission {

std::string ContainerRef::name() const {
  return printable(container["name"].string().value_or("").substr(0, 64));
}

std::vector<ContainerRef> containers_of(const json::Value& pod) {
  std::vector<ContainerRef> places;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const auto containers = pod["spec"][list];
    if (!containers.is(json::Kind::Array)) continue;
    std::size_t number = 0;
    for (const auto container : containers) places.push_back({list, number++, container});
  }
  return places;
}

bool is_gpu_resource(std::string_view name) {
  static constexpr std::array kNames = {podspec::kAliyunGpuMem,
                                        podspec::kAliyunGpuCount,
                                        podspec::kNvidiaGpu,
                                        podspec::kHamiGpuMem,
                                        podspec::kHamiGpuMemPercentage,
                                        podspec::kHamiGpuCores,
                                        podspec::kHamiPriority,
                                        podspec::kShareSlot,
                                        podspec::kAlphaNvidiaGpu};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool has_gpu_resources(const json::Value& pod) {
  const auto places = containers_of(pod);
  return std::any_of(places.begin(), places.end(), [](const ContainerRef& place) {
    const auto resources = place.container["resources"];
    for (const std::string_view list : {"limits", "requests"}) {
      for (const auto member : resources[list]) {
        if (is_gpu_resource(member.key())) return true;
      }
    }
    return false;
  });
}

}  // namespace gantry::admission
