// SPDX-License-Identifier: Apache-2.0
// Writes the configuration of a virtual machine with GPUs, for one hypervisor.
#pragma once

#include "base/core/result.hpp"
#include "vm/hypervisor/guest_gpu.hpp"

#include <string>
#include <vector>

namespace gantry::hypervisor {

struct WrittenConfig {
  std::string text;                // the file, the command or the lines to add
  std::vector<std::string> notes;  // what the text cannot say, one sentence each
};

// Invalid for a specification that cannot be written (no GPU, more GPUs than buses, passthrough and
// vGPU together), Unsupported if the hypervisor cannot do it.
Result<WrittenConfig> write_config(Hypervisor hypervisor, const VmSpec& vm);

}  // namespace gantry::hypervisor
