// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::runtime {

// For programs that runtimes start beside a stranger's files: no environment that the image may
// have written, no directory of the image to stand in, no process that others may look into.
void forget_surroundings();

}  // namespace gantry::runtime
