// SPDX-License-Identifier: Apache-2.0
// All that is not well is named, and the command is for all of it.
#pragma once

#include "doctor/engine/check.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

// "a", "a and b", "a, b, c and 5 more"
std::string join_names(const std::vector<std::string>& names);

// One command for every value: '@' in the pattern stands for it. Several become a shell loop.
std::string command_for(const std::vector<std::string>& values, std::string_view pattern);

// What a check looked at, and which of it was not well.
struct Tally {
  std::vector<std::string> names;  // of the offenders, for people
  std::vector<std::string> keys;   // the same for commands
  std::vector<Evidence> bad;
  std::vector<Evidence> well;

  void found(std::string name, Evidence evidence, std::string key = "");
  void good(Evidence evidence) { well.push_back(std::move(evidence)); }
  bool any_bad() const { return !names.empty(); }
  bool empty() const { return names.empty() && well.empty(); }
  std::string who() const { return join_names(names); }
  std::string command(std::string_view pattern) const { return command_for(keys, pattern); }
};

std::string gpu_label(const model::Gpu& gpu);  // "GPU 0 (0000:3b:00.0)"

}  // namespace gantry::doctor
