// SPDX-License-Identifier: Apache-2.0
#include "gantry/build_facts.hpp"
#include "gantry/container_cli.hpp"

#include <fmt/format.h>

namespace gantry::cli {

std::string container_version_text() {
  return fmt::format(
      "cli-version: {0}\nlib-version: {0}\nbuild date: {1}\nbuild revision: {2}\n"
      "build compiler: {3} {4}\nbuild platform: {5}\nbuild flags: {6}\n",
      GANTRY_VERSION " (gantry)", GANTRY_BUILD_DATE, GANTRY_BUILD_REVISION, GANTRY_BUILD_COMPILER,
      __VERSION__, GANTRY_BUILD_PLATFORM, GANTRY_BUILD_FLAGS);
}

}  // namespace gantry::cli
