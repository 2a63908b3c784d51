// SPDX-License-Identifier: Apache-2.0
// modprobe's configuration: which modules it loads at boot, and which it must not load.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

struct ModprobeLine {
  std::string path;  // of the file
  std::string text;  // without spaces around it; never empty, never a comment
};

// All lines that count: a file hides files of the same name in later directories. Bounded: a file
// beyond a mebibyte is left out.
std::vector<ModprobeLine> read_modprobe_lines(const sys::Host& host);

// "blacklist nvidia", "install nvidia /bin/false", "alias nvidia off"
bool forbids_module(std::string_view line, std::string_view module);

}  // namespace gantry::preflight
