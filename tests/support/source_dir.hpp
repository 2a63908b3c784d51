// SPDX-License-Identifier: Apache-2.0
// Where the tests' data is. The build knows; a test binary carried to another machine is told by
// the environment (tests/gpu/run).
#pragma once

#include <cstdlib>
#include <string>

namespace gantry::test {

inline std::string source_dir() {
  const char* told = std::getenv("GANTRY_SOURCE_DIR");
  return told != nullptr ? told : GANTRY_SOURCE_DIR;
}

}  // namespace gantry::test
