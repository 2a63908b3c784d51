// SPDX-License-Identifier: Apache-2.0
// Which GPUs and MIG instances are meant by what a container asked for.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::plan {

// Points into the inventory it was selected from.
struct SelectedDevice {
  const model::Gpu* gpu = nullptr;
  const model::MigInstance* mig = nullptr;  // nullptr: the whole GPU
  bool operator==(const SelectedDevice&) const = default;
};

struct Selection {
  std::vector<SelectedDevice> devices;  // in the inventory's order, none twice
  bool none = false;                    // "none": the driver's files and no GPU
  std::vector<std::string> notes;       // what `all` left out, and why
};

// `asked` as in model::ContainerRequest::devices: index, "GPU:INSTANCE", UUIDs of GPUs and MIG
// instances, "MIG-GPU-uuid/gi/ci", PCI addresses, "all", "none"; the first of the last two decides
// for the whole list. `all` means what can be used: of a GPU in MIG mode its instances, of a lost
// one nothing; a GPU asked for by name is given whole, or refused with the reason. NotFound for
// what is not there, with what is; Unsupported for a lost GPU.
Result<Selection> select(const model::Inventory& machine, std::span<const std::string> asked);

// The one device of this name; neither "all" nor "none".
Result<SelectedDevice> select_one(const model::Inventory& machine, std::string_view id);

// "0 (GPU-...), 1 (GPU-...), 1:0 (MIG-...)": for messages; long lists are cut.
std::string describe_devices(const model::Inventory& machine);

}  // namespace gantry::plan
