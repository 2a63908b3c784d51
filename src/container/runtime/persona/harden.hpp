// SPDX-License-Identifier: Apache-2.0
// The first step of every hook. A hook runs as the host's root, perhaps with the image's
// environment, the container's root as working directory, and descriptors of the runtime.
#pragma once

namespace gantry::runtime {

// Clears the environment, changes to "/", closes every descriptor above stderr, and prevents other
// processes from tracing this one or accessing it through /proc. Ignores errors.
void harden();

}  // namespace gantry::runtime
