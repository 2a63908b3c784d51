// SPDX-License-Identifier: Apache-2.0
// The first thing a hook does. It runs as the host's root with whatever surroundings the runtime
// left: perhaps the image's environment, the container's root as working directory, descriptors of
// the runtime.
#pragma once

#include <string_view>

namespace gantry::runtime {

// Empties the environment, goes to "/", closes every descriptor above stderr, and makes this
// process one that others cannot trace, nor reach through /proc. What cannot be done is no reason
// to stop.
void harden();

// A line for the runtime's user, as hooks of this family write them: time="..." level=...
// msg="...".
void say(std::string_view level, std::string_view message);

}  // namespace gantry::runtime
