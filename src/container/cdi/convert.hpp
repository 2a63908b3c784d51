// SPDX-License-Identifier: Apache-2.0
// Between the edits that plan makes and the edits of a CDI specification.
#pragma once

#include "container/cdi/spec.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::cdi {

enum class DeviceNumbers : std::uint8_t {
  LeaveOut,  // for files: the majors of nvidia-uvm and nvidia-caps change from boot to boot
  Write,     // for what is used at once
};

struct ConvertedEdits {
  Edits edits;
  std::vector<std::string> dropped;  // what CDI cannot say, one sentence each
};

ConvertedEdits from_container_edits(const model::ContainerEdits& edits,
                                    DeviceNumbers numbers = DeviceNumbers::LeaveOut);

// `why` is what `gantry explain` shows for each edit: "acme.org/nic=a of /etc/cdi/acme.yaml". What
// a ContainerEdits cannot say (net devices, intelRdt) becomes a note.
model::ContainerEdits to_container_edits(const Edits& edits, std::string_view why);

// Puts `more` behind `edits`; what is there already, word for word, is not doubled.
void append(Edits& edits, const Edits& more);

// What every specification should look like before it is written: nothing twice, and what the
// specification itself has is not repeated in a device unless that would leave the device empty.
void remove_duplicates(Spec& spec);

}  // namespace gantry::cdi
