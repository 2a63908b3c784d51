// SPDX-License-Identifier: Apache-2.0
// The first step of every hook. A hook runs as the host's root, perhaps with the image's
// environment, the container's root as working directory, and descriptors of the runtime.
#pragma once

#include <string_view>

namespace gantry::runtime {

// Clears the environment, changes to "/", closes every descriptor above stderr, and prevents other
// processes from tracing this one or accessing it through /proc. Ignores errors.
void harden();

// Writes a line for the runtime's user in the format of NVIDIA's hooks: time="..." level=...
// msg="...".
void say(std::string_view level, std::string_view message);

}  // namespace gantry::runtime
