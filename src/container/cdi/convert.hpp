// SPDX-License-Identifier: Apache-2.0
// Converts between the edits of src/container/plan and the edits of a CDI specification.
#pragma once

#include "container/cdi/spec.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::cdi {

enum class DeviceNumbers : std::uint8_t {
  LeaveOut,  // for files: the majors of nvidia-uvm and nvidia-caps can change at every boot
  Write,     // for edits that are applied at once
};

struct ConvertedEdits {
  Edits edits;
  std::vector<std::string> dropped;  // what CDI cannot express, one sentence each
};

ConvertedEdits from_container_edits(const model::ContainerEdits& edits,
                                    DeviceNumbers numbers = DeviceNumbers::LeaveOut);

// `why` is the reason that `gantry explain` shows for each edit: "acme.org/nic=a of
// /etc/cdi/acme.yaml". Fields that ContainerEdits does not have (net devices, intelRdt) become a
// note.
model::ContainerEdits to_container_edits(const Edits& edits, std::string_view why);

// Appends `more` to `edits`; skips entries that are already there.
void append(Edits& edits, const Edits& more);

// Prepares a specification for writing: removes duplicates, and removes from each device the edits
// that the specification itself has, unless the device would then be empty.
void remove_duplicates(Spec& spec);

}  // namespace gantry::cdi
