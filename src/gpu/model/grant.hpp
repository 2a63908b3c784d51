// SPDX-License-Identifier: Apache-2.0
// What the node agent gave to one container of a pod.
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
  std::uint32_t cores = 0;  // per cent of its time; 0: no limit
  bool operator==(const GrantPart&) const = default;
};

// When a container runs: those of one pod that never do at once take the same memory in turn.
enum class GrantPhase : std::uint8_t { Main, Init, Sidecar };

struct GrantShare {
  std::string name;  // the keeper's, and of the CDI device gantry.dev/share=NAME
  GrantPhase phase = GrantPhase::Main;
  std::uint32_t position = 0;  // among the pod's containers, or its init containers
  std::vector<GrantPart> parts;
  std::vector<std::string> other_slots;  // names that its answers have beside, with nothing in them
  bool operator==(const GrantShare&) const = default;
};

struct Grant {
  // UUIDs of GPUs and MIG instances that it may name itself; none of a share: it has its slot.
  std::vector<std::string> devices;
  std::string pod_namespace;  // the rest is for people; "" where it is not known
  std::string pod;
  std::map<std::string, std::vector<std::string>> resources;  // the kubelet's ids by resource
  std::optional<GrantShare> share;
  bool operator==(const Grant&) const = default;
};

}  // namespace gantry::model
