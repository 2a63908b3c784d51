// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::runtime {

// Becomes the program `gantry` beside this one, which answers to argv[0] as well. Returns only when
// that fails, with an exit status, after saying why.
int exec_gantry(char** argv);

}  // namespace gantry::runtime
