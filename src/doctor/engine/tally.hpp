// SPDX-License-Identifier: Apache-2.0
// Collects the items that a check looked at, so that a finding names all bad ones and gives one
// command for all of them.
#pragma once

#include "doctor/engine/check.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

// "a", "a and b", "a, b, c and 5 more"
std::string join_names(const std::vector<std::string>& names);

// Puts each value in place of '@' in the pattern. Several values become a shell loop.
std::string command_for(const std::vector<std::string>& values, std::string_view pattern);

// The good and the bad items that a check looked at.
struct Tally {
  std::vector<std::string> names;  // of the bad items, for people
  std::vector<std::string> keys;   // of the bad items, for commands
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
