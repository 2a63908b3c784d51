// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/host.hpp"
#include "gantry/command.hpp"

namespace gantry::cli {

// To be called after a GPU left its driver or came back. The driver gives a GPU the lowest free
// minor number, so a CDI specification that is older may name the node of another GPU. Makes the
// files of `gantry cdi refresh` again, if this machine has them and no agent runs that does it
// itself. A failure is a note with the command that repeats it.
void refresh_cdi(const sys::Host& host, const Context& context);

}  // namespace gantry::cli
