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

// The log that `debug` and `log-level` of config.toml configure.
Log debug_log(const Settings& settings) {
  const auto& file = settings.runtime.debug;
  return Log(LogForm::Logrus, 0, append_to_file(file == "/dev/null" ? "" : file))
      .starting_at(parse_log_level(settings.runtime.log_level));
}

void write_debug(const Settings& settings, const CommandLine& line, const CreateResult& created) {
  const auto log = debug_log(settings);
  const LogField id{"id", line.id};
  for (const auto& warning : created.warnings) log.write(LogLevel::Warning, "", warning, {id});
  log.info("", created.changed ? LogText("config.json was edited") : LogText("nothing to do"),
           {id});
  for (const auto& detail : created.details) log.write(LogLevel::Debug, "", detail, {id});
  if (parse_log_level(settings.runtime.log_level) > LogLevel::Debug) return;
  for (const auto& ignored : config::describe_ignored_values(settings))
    log.debug("", "configured value has no effect", {id, {"value", ignored}});
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
  for (const auto& warning : created.warnings)
    engine_log(line).write(LogLevel::Warning, "", warning);
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
      debug_log(settings).error("", "cannot prepare the container",
                                {{"id", line.id}, {"err", created.error()}});
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
