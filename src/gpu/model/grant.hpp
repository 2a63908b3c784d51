// SPDX-License-Identifier: Apache-2.0
// The devices that the node agent gave to one container of a pod.
#pragma once

#include "base/core/object_ref.hpp"
#include "gpu/model/container_phase.hpp"
#include "gpu/model/gpu_share.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

struct GrantShare {
  std::string name;  // in the share daemon, and of the CDI device gantry.dev/share=NAME
  ContainerPhase phase = ContainerPhase::Main;
  std::uint32_t position = 0;  // among the pod's containers, or its init containers
  std::vector<GpuShare> parts;
  std::vector<std::string>
      other_slots;  // other slot names in its Allocate answers; these are empty
  bool operator==(const GrantShare&) const = default;
};

struct Grant {
  // UUIDs of GPUs and MIG instances that the container may name itself. Empty for a share, which
  // has its slot.
  std::vector<GpuUuid> devices;
  PodRef pod;  // the file does not contain the UID, but its path does; names are "" if unknown
  std::map<std::string, std::vector<std::string>> resources;  // the kubelet's ids by resource
  std::optional<GrantShare> share;
  bool operator==(const Grant&) const = default;
};

}  // namespace gantry::model
