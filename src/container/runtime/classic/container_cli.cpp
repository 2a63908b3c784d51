// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "container/runtime/classic/configure.hpp"
#include "container/runtime/persona/entry_points.hpp"
#include "container/runtime/persona/exec_gantry.hpp"
#include "container/runtime/persona/harden.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace gantry::runtime {
namespace {

int fail(std::string_view text) {
  fmt::print(stderr, "nvidia-container-cli: {}\n", printable(text));
  if (!contains(text, "`")) {
    fmt::print(stderr, "Run `gantry doctor` for the cause and the remedy.\n");
  }
  return 1;
}

int configure_main(std::span<const std::string> arguments) {
  if (asks_for_help(arguments)) {
    fmt::print("{}", configure_help());
    return 0;
  }
  harden();
  const auto options = parse_configure(arguments);
  if (!options.ok()) {
    return fail(options.error().text() + "; try `nvidia-container-cli configure --help`");
  }
  const DebugLog log(options->debug_file);
  const auto done = configure(*options, log);
  if (done.ok()) return 0;
  log.write(done.error().text());
  return fail(done.error().text());
}

}  // namespace

int container_cli_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return is_configure(arguments) ? configure_main(arguments) : exec_gantry(argv);
}

}  // namespace gantry::runtime
