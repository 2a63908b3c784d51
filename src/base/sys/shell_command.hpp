// SPDX-License-Identifier: Apache-2.0
// Commands that are printed for a person to paste. A command that helps the machine below a root
// must not change the machine that the person types it on.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::sys {

// The text as one word of a shell command, quoted if it must be.
std::string shell_word(std::string_view text);

// " --root DIR"; "" for the machine that we run on.
std::string root_flag(std::string_view root);
inline std::string root_flag(const Host& host) {
  return root_flag(host.root());
}

// Adds `--root DIR` to each command of gantry in the text that takes it and does not have it. sudo
// drops GANTRY_ROOT, so a printed command names the root even if the variable is set.
std::string with_root(std::string_view text, std::string_view root);

// A command that must be run on the machine: "on that machine: COMMAND" unless we run on it.
std::string on_machine(const Host& host, std::string_view command);

// The remedy of a fault, as it is printed for a machine: commands of gantry name the root, commands
// of a simulated machine are one of `gantry sim`, followed by the real remedy as a comment of the
// shell, and everything else begins with "on that machine:".
std::string remedy_for(const Host& host, std::string_view remedy);

}  // namespace gantry::sys
