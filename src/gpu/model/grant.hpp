// SPDX-License-Identifier: Apache-2.0
// The devices that the node agent gave to one container of a pod.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

// A part of one GPU.
struct GrantPart {
  std::string gpu;          // its UUID
  std::uint32_t index = 0;  // of the GPU, on its node
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;  // percent of its time; 0: no limit
  bool operator==(const GrantPart&) const = default;
};

// When a container runs. Containers of one pod that never run at the same time use the same memory
// one after the other.
enum class GrantPhase : std::uint8_t { Main, Init, Sidecar };

struct GrantShare {
  std::string name;  // in the share daemon, and of the CDI device gantry.dev/share=NAME
  GrantPhase phase = GrantPhase::Main;
  std::uint32_t position = 0;  // among the pod's containers, or its init containers
  std::vector<GrantPart> parts;
  std::vector<std::string>
      other_slots;  // other slot names in its Allocate answers; these are empty
  bool operator==(const GrantShare&) const = default;
};

struct Grant {
  // UUIDs of GPUs and MIG instances that the container may name itself. Empty for a share, which
  // has its slot.
  std::vector<std::string> devices;
  std::string pod_namespace;  // the rest is for people; "" if unknown
  std::string pod;
  std::map<std::string, std::vector<std::string>> resources;  // the kubelet's ids by resource
  std::optional<GrantShare> share;
  bool operator==(const Grant&) const = default;
};

}  // namespace gantry::model
