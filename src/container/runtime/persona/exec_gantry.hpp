// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::runtime {

// Executes the program `gantry` in the same directory with the same argv[0]. Returns only on
// failure: reports the reason and returns an exit status.
int exec_gantry(char** argv);

}  // namespace gantry::runtime
