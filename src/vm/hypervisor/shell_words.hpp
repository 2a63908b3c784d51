// SPDX-License-Identifier: Apache-2.0
// The words of a shell script with a command line, or of a /proc/PID/cmdline. Expands nothing.
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::hypervisor {

constexpr std::size_t kCommandSizeLimit = std::size_t{1} << 20;
constexpr std::size_t kWordLimit = 20'000;

struct ShellWord {
  std::string text;
  int line = 1;
  bool ends_command = false;  // a newline, `;`, `&` or `|` follows
};

// Knows quotes, backslashes, continued lines and comments. A text with NUL bytes is a list of words
// that end with one. Corrupt for a quote without its end; TooLarge beyond the limits.
Result<std::vector<ShellWord>> shell_words(std::string_view text);

}  // namespace gantry::hypervisor
