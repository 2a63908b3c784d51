// SPDX-License-Identifier: Apache-2.0
// Reads kubelet_internal_checkpoint, which says which container of which pod has which devices. It
// is the only place that has a pod's UID together with device ids. The kubelet writes it before
// PreStartContainer.
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
  std::map<std::string, std::vector<std::string>> devices;  // healthy devices by resource; sorted
  std::map<model::DeviceAllocation, std::string>
      answers;  // to Allocate, in base64; stored_answer() decodes them
  bool operator==(const Checkpoint&) const = default;
};

// Corrupt if the text is not JSON or has another structure. Unknown members are ignored, and so is
// the checksum.
Result<Checkpoint> parse_checkpoint(std::string text);

// NotFound: this kubelet has never allocated a device.
Result<Checkpoint> read_checkpoint(const std::string& directory);

// The containers that have exactly these devices of this resource. All belong to one pod: the
// kubelet forgets an ended pod before it gives its devices to another. There are several if an init
// container passed its devices on; the file has no order that would tell them apart.
std::vector<model::DeviceAllocation> holders_of(const Checkpoint& checkpoint,
                                                std::string_view resource,
                                                const std::vector<std::string>& ids);

// The answer with which the container is started: the kubelet called Allocate once and reuses the
// answer for the life of the pod. NotFound if there is none.
Result<model::ContainerAllocateResponse> stored_answer(const Checkpoint& checkpoint,
                                                       const model::DeviceAllocation& holder);

}  // namespace gantry::kubelet
