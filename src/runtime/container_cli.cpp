// SPDX-License-Identifier: Apache-2.0
#include "runtime/low_level.hpp"
#include "runtime/personas.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::runtime {

int container_cli_main([[maybe_unused]] int argc, char** argv) {
  const auto gantry = sibling("gantry");
  if (gantry.empty()) {
    std::fprintf(stderr,
                 "nvidia-container-cli: the program gantry is not beside this one; install the "
                 "whole package\n");
    return 1;
  }
  // argv[0] stays what it is: by that name gantry knows which face to show.
  ::execv(gantry.c_str(), argv);
  std::fprintf(stderr, "nvidia-container-cli: exec %s: %s\n", gantry.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace gantry::runtime
