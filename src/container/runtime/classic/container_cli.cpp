// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/configure.hpp"
#include "container/runtime/persona/entry_points.hpp"
#include "container/runtime/persona/exec_gantry.hpp"
#include "container/runtime/persona/harden.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <cstdio>

namespace gantry::runtime {
namespace {

int print_failure(const Error& error) {
  fmt::print(stderr, "{}", describe_failure(error));
  return 1;
}

int configure_main(std::span<const std::string> arguments) {
  if (asks_for_help(arguments)) {
    fmt::print("{}", configure_help());
    return 0;
  }
  harden();
  auto options = parse_configure(arguments);
  if (!options.ok()) {
    return print_failure(
        std::move(options).error().advise("try `nvidia-container-cli configure --help`"));
  }
  const Log log(LogForm::ContainerCli, 0,
                append_to_file(options->debug_file, O_NOFOLLOW | O_NONBLOCK));
  const auto done = configure(*options, log);
  if (done.ok()) return 0;
  log.write(LogLevel::Error, kConfigureComponent, done.error().text());
  return print_failure(done.error());
}

}  // namespace

int container_cli_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return is_configure(arguments) ? configure_main(arguments) : exec_gantry(argv);
}

}  // namespace gantry::runtime
