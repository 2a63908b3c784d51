// SPDX-License-Identifier: Apache-2.0
#include "container/config/settings.hpp"
#include "container/runtime/injection/container_record.hpp"
#include "container/runtime/injection/load_settings.hpp"
#include "container/runtime/injection/low_level_runtime.hpp"
#include "container/runtime/persona/command_line.hpp"
#include "container/runtime/persona/entry_points.hpp"
#include "container/runtime/persona/log.hpp"
#include "container/runtime/shim/shim_create.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace gantry::runtime {
namespace {

using config::Settings;

// The names nvidia-container-runtime.cdi and .legacy force a mode.
void force_mode(std::string_view called, Settings& settings) {
  if (called.ends_with(".legacy")) settings.runtime.mode = "legacy";
  if (called.ends_with(".cdi")) settings.runtime.mode = "cdi";
}

// Executes the low-level runtime; returns only on failure.
Status become(const std::string& runtime, char** argv) {
  std::string name = runtime;
  argv[0] = name.data();
  ::execv(runtime.c_str(), argv);
  return Error::sys(errno, fmt::format("exec {}", runtime));
}

// Writes to the log that `debug` and `log-level` of config.toml configure.
void write_debug(const Settings& settings, const CommandLine& line, std::string_view level,
                 std::string_view message) {
  const auto& log = settings.runtime.debug;
  if (log.empty() || log == "/dev/null" || !is_logged(settings.runtime.log_level, level)) return;
  write_log({.log = log}, level, fmt::format("{}: {}", line.id, message));
}

void write_debug(const Settings& settings, const CommandLine& line, const CreateResult& created) {
  for (const auto& warning : created.warnings) write_debug(settings, line, "warning", warning);
  write_debug(settings, line, "info", created.changed ? "config.json was edited" : "nothing to do");
  for (const auto& detail : created.details) write_debug(settings, line, "debug", detail);
  if (!is_logged(settings.runtime.log_level, "debug")) return;
  for (const auto& word : config::describe_ignored_values(settings)) {
    write_debug(settings, line, "debug", word);
  }
}

Status create(const CommandLine& line, const Settings& settings, const std::string& low_level) {
  const auto root = shim_root(settings);
  GANTRY_TRY(const auto host, sys::Host::at(root));
  GANTRY_CHECK(config::check_mode(settings));
  const auto mode = settings.runtime.mode == "legacy" ? ShimMode::Classic : ShimMode::Inject;
  const auto refresh = [&] { return refresh_by_gantry(root, settings.gantry.refresh_deadline); };
  GANTRY_TRY(const auto created, prepare_create({.line = line,
                                                 .surroundings = {host, settings, refresh},
                                                 .mode = mode,
                                                 .low_level = low_level}));
  for (const auto& warning : created.warnings) write_log(line, "warning", warning);
  write_debug(settings, line, created);
  return {};
}

void forget(const CommandLine& line, const Settings& settings) {
  const auto host = sys::Host::at(shim_root(settings));
  if (host.ok()) remove_container_record(*host, line.id);
}

Status run(const CommandLine& line, char** argv) {
  GANTRY_TRY(auto settings, load_settings(config::process_environment));
  force_mode(argv[0], settings);
  const auto path = config::process_environment("PATH").value_or("");
  GANTRY_TRY(const auto runtime, find_low_level(settings.runtime.runtimes, path));
  if (line.version) {
    std::printf("gantry-runtime %s\n", GANTRY_VERSION);
    std::fflush(stdout);
  }
  if (line.creates()) {
    auto created = create(line, settings, runtime);
    if (!created.ok()) {
      write_debug(settings, line, "error", created.error().text());
      return created;
    }
  }
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
