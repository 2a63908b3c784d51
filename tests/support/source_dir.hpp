// SPDX-License-Identifier: Apache-2.0
// Where the tests' data is: the source tree of the build. On another machine tests/gpu/run puts a
// link there.
#pragma once

#include <string>

namespace gantry::test {

inline std::string source_dir() {
  return GANTRY_SOURCE_DIR;
}

}  // namespace gantry::test
