// SPDX-License-Identifier: Apache-2.0
// kubelet_internal_checkpoint: which container of which pod the kubelet gave which devices. It is
// the one place where a pod's UID stands beside device ids; written before PreStartContainer.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kubelet {

inline constexpr std::string_view kCheckpointFile = "kubelet_internal_checkpoint";

struct Checkpoint {
  std::vector<model::DeviceAllocation> holders;             // uid, container, resource, ids; sorted
  std::map<std::string, std::vector<std::string>> devices;  // healthy ones by resource; sorted
  std::map<model::DeviceAllocation, std::string>
      answers;  // to Allocate, in base64; stored_answer() reads it
  bool operator==(const Checkpoint&) const = default;
};

// Corrupt when it is no JSON or has another shape. Members that nobody knows are skipped, the
// checksum is the kubelet's own matter.
Result<Checkpoint> parse_checkpoint(std::string text);

// NotFound: this kubelet has never given anything away.
Result<Checkpoint> read_checkpoint(const std::string& directory);

// Who has exactly these devices of this resource. All of one pod: the kubelet forgets an ended pod
// before it gives its devices to another. More than one container when an init container handed its
// devices on; the file has no order that would tell them apart.
std::vector<model::DeviceAllocation> holders_of(const Checkpoint& checkpoint,
                                                std::string_view resource,
                                                const std::vector<std::string>& ids);

// Kind the container is started with: the kubelet asked Allocate once and replays this for the life
// of the pod. NotFound where it has none.
Result<model::ContainerAllocateResponse> stored_answer(const Checkpoint& checkpoint,
                                                       const model::DeviceAllocation& holder);

}  // namespace gantry::kubelet
