// SPDX-License-Identifier: Apache-2.0
#include "runtime/command_line.hpp"
#include "runtime/log.hpp"
#include "runtime/low_level.hpp"
#include "runtime/personas.hpp"
#include "settings/settings.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gantry::runtime {
namespace {

Result<settings::Settings> load_settings() {
  const settings::Lookup environment = settings::process_environment;
  GANTRY_TRY(const auto host, sys::Host::at(environment("GANTRY_ROOT").value_or("/")));
  GANTRY_TRY(auto loaded, settings::load(host, settings::config_path(environment)));
  GANTRY_CHECK(settings::apply_environment(loaded, environment));
  return loaded;
}

// Becomes the low-level runtime; returns only when that fails.
Status become(const std::string& runtime, char** argv) {
  std::string name = runtime;
  argv[0] = name.data();
  ::execv(runtime.c_str(), argv);
  return Error::sys(errno, fmt::format("exec {}", runtime));
}

Status run(const CommandLine& line, char** argv) {
  GANTRY_TRY(const auto loaded, load_settings());
  const auto path = settings::process_environment("PATH").value_or("");
  GANTRY_TRY(const auto runtime, find_low_level(loaded.runtime.runtimes, path));
  if (line.version) {
    std::printf("gantry-runtime %s\n", GANTRY_VERSION);
    std::fflush(stdout);
  }
  return become(runtime, argv);
}

}  // namespace

int shim_main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto line = parse_command_line(arguments);
  const auto status = run(line, argv);
  if (!status.ok()) report_error(line, status.error().text());
  return 1;
}

}  // namespace gantry::runtime
