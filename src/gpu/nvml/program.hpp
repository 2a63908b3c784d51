// SPDX-License-Identifier: Apache-2.0
// The program gantry-nvml (gpu/probe/nvml_program.hpp has its arguments).
#pragma once

namespace gantry::nvml {

// Returns the exit status, or ends the process.
int program(int argc, char** argv);

}  // namespace gantry::nvml
