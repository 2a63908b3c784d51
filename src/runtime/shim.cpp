// SPDX-License-Identifier: Apache-2.0
#include "runtime/account.hpp"
#include "runtime/command_line.hpp"
#include "runtime/create.hpp"
#include "runtime/load_settings.hpp"
#include "runtime/log.hpp"
#include "runtime/low_level.hpp"
#include "runtime/personas.hpp"
#include "settings/settings.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace gantry::runtime {
namespace {

using settings::Settings;

// The names nvidia-container-runtime.cdi and .legacy force a mode.
Result<Mode> mode_of(std::string_view called, const Settings& settings) {
  if (called.ends_with(".legacy")) return Mode::Classic;
  if (called.ends_with(".cdi")) return Mode::Inject;
  if (settings.runtime.mode == "legacy") return Mode::Classic;
  if (settings.runtime.mode == "csv") {
    return Error(Errc::Unsupported,
                 "mode = \"csv\" is for Tegra systems, which Gantry does not know; set mode = "
                 "\"auto\" in config.toml");
  }
  return Mode::Inject;
}

// Becomes the low-level runtime; returns only when that fails.
Status become(const std::string& runtime, char** argv) {
  std::string name = runtime;
  argv[0] = name.data();
  ::execv(runtime.c_str(), argv);
  return Error::sys(errno, fmt::format("exec {}", runtime));
}

// What the administrator asked to be written down: `debug` of config.toml.
void write_debug(const Settings& settings, const CommandLine& line, std::string_view message) {
  if (settings.runtime.debug.empty() || settings.runtime.debug == "/dev/null") return;
  write_log({.log = settings.runtime.debug}, "info", fmt::format("{}: {}", line.id, message));
}

Status create(const CommandLine& line, const Settings& settings, std::string_view called,
              const std::string& low_level) {
  const auto root = shim_root(settings);
  GANTRY_TRY(const auto host, sys::Host::at(root));
  GANTRY_TRY(const auto mode, mode_of(called, settings));
  const auto refresh = [&] { return refresh_by_gantry(root, settings.gantry.refresh_deadline); };
  GANTRY_TRY(const auto created, prepare_create({.line = line,
                                                 .surroundings = {host, settings, refresh},
                                                 .mode = mode,
                                                 .low_level = low_level}));
  for (const auto& warning : created.warnings) write_log(line, "warning", warning);
  write_debug(settings, line, created.changed ? "config.json was edited" : "nothing to do");
  return {};
}

void forget(const CommandLine& line, const Settings& settings) {
  const auto host = sys::Host::at(shim_root(settings));
  if (host.ok()) remove_account(*host, line.id);
}

Status run(const CommandLine& line, char** argv) {
  GANTRY_TRY(const auto settings, load_settings(settings::process_environment));
  const auto path = settings::process_environment("PATH").value_or("");
  GANTRY_TRY(const auto runtime, find_low_level(settings.runtime.runtimes, path));
  if (line.version) {
    std::printf("gantry-runtime %s\n", GANTRY_VERSION);
    std::fflush(stdout);
  }
  if (line.creates()) GANTRY_CHECK(create(line, settings, argv[0], runtime));
  if (line.command == "delete") forget(line, settings);
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
