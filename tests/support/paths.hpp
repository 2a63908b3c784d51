// SPDX-License-Identifier: Apache-2.0
// Where tests find their data and the programs they start. Both are found from the test program's
// own path: paths of one checkout in compiler flags would keep ccache from helping another one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gantry::test {

// The nearest directory above this program that contains `part`.
inline std::filesystem::path directory_with(const char* part) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  for (auto at = self.parent_path(); at != at.root_path(); at = at.parent_path()) {
    if (std::filesystem::exists(at / part)) return at;
  }
  std::abort();  // the program was copied out of its tree
}

inline std::string source_dir() {
  return directory_with("tests/golden").string();
}

// A file of the build tree: built("bin/gantry").
inline std::string built(const std::string& path) {
  return (directory_with("lib/gantry/sim") / path).string();
}

}  // namespace gantry::test
