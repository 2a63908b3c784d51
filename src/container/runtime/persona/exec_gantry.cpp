// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/exec_gantry.hpp"

#include "container/runtime/injection/low_level_runtime.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::runtime {

int exec_gantry(char** argv) {
  const auto gantry = sibling_program_path("gantry");
  if (gantry.empty()) {
    std::fprintf(stderr,
                 "%s: the program gantry is not in the same directory; install the whole package\n",
                 argv[0]);
    return 1;
  }
  // Keeps argv[0]: gantry chooses its command-line interface by that name.
  ::execv(gantry.c_str(), argv);
  std::fprintf(stderr, "%s: exec %s: %s\n", argv[0], gantry.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace gantry::runtime
