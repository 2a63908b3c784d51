// SPDX-License-Identifier: Apache-2.0
// What programs of other projects answered to what Gantry prints:
// tests/golden/vm/kata-kubevirt.txt.
#pragma once

#include "support/paths.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::test {

// The words after `kind` of every such line.
inline std::vector<std::vector<std::string>> peer_answers(std::string_view kind) {
  std::vector<std::vector<std::string>> answers;
  std::ifstream file(source_dir() + "/tests/golden/vm/kata-kubevirt.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    std::string word;
    if (!(text >> word) || word != kind) continue;
    auto& words = answers.emplace_back();
    while (text >> word) words.push_back(word);
  }
  return answers;
}

}  // namespace gantry::test
