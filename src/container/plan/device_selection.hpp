// SPDX-License-Identifier: Apache-2.0
// Finds the GPUs and MIG instances that a container's request names.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::plan {

// Points into the inventory.
struct SelectedDevice {
  const model::Gpu* gpu = nullptr;
  const model::MigInstance* mig = nullptr;  // nullptr: the whole GPU
  bool operator==(const SelectedDevice&) const = default;
};

struct Selection {
  std::vector<SelectedDevice> devices;  // in the inventory's order, without duplicates
  bool none = false;                    // "none": the driver's files but no GPU
  std::vector<std::string> notes;       // devices that `all` left out, and why
};

// `asked` as in model::ContainerRequest::devices: index, "GPU:INSTANCE", UUIDs of GPUs and MIG
// instances, "MIG-GPU-uuid/gi/ci", PCI addresses, "all", "none"; the first "all" or "none" decides
// for the whole list. `all` means every usable device: the instances of a GPU in MIG mode, but no
// lost GPU. A GPU that is named is given as a whole, or refused with the reason. NotFound, with the
// existing devices, for an unknown name; Unsupported for a lost GPU.
Result<Selection> select(const model::Inventory& machine, std::span<const std::string> asked);

// The device with this name; "all" and "none" are not allowed.
Result<SelectedDevice> select_one(const model::Inventory& machine, std::string_view id);

// "0 (GPU-...), 1 (GPU-...), 1:0 (MIG-...)" for messages; long lists are shortened.
std::string describe_devices(const model::Inventory& machine);

}  // namespace gantry::plan
