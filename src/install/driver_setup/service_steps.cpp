// SPDX-License-Identifier: Apache-2.0
// Steps about processes: those that use the driver, and the driver's own services.
#include "base/core/text.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/device_nodes.hpp"
#include "install/driver_setup/idle.hpp"
#include "install/driver_setup/setup_work_internal.hpp"
#include "install/preflight/driver_services.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kServiceDeadline{90};
constexpr std::chrono::milliseconds kDaemonPoll{100};
constexpr int kDaemonPolls = 100;
constexpr std::string_view kFabricUnit = "nvidia-fabricmanager.service";
constexpr unsigned kUvmPersistenceSince = 550;

ProgramCall systemctl(std::string_view verb, std::string_view unit) {
  return {
      .words = {{.text = "systemctl"}, {.text = std::string(verb)}, {.text = std::string(unit)}},
      .needs = {},
      .deadline = kServiceDeadline};
}

bool is_active(SetupWork& work, std::string_view unit) {
  return work.effects.run(systemctl("is-active", unit)).ok();
}

bool has_unit_file(const sys::Host& host, std::string_view unit) {
  constexpr std::array<std::string_view, 3> kUnitDirectories{
      "/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"};
  return std::any_of(kUnitDirectories.begin(), kUnitDirectories.end(), [&](auto directory) {
    return host.exists(fmt::format("{}/{}", directory, unit));
  });
}

// On disk before the service is stopped.
Status note_service(SetupWork& work, std::string_view service) {
  auto& services = work.journal.services;
  if (std::find(services.begin(), services.end(), service) != services.end()) return {};
  services.emplace_back(service);
  return save_journal(work);
}

Status stop_daemon(SetupWork& work) {
  const auto pid = persistence_daemon(work.host);
  if (pid == 0) return {};
  GANTRY_CHECK(note_service(work, kPersistenceDaemon));
  GANTRY_CHECK(work.effects.terminate(pid));
  for (int polls = 0; polls < kDaemonPolls; ++polls) {
    if (persistence_daemon(work.host) != pid) return {};
    work.effects.pause(kDaemonPoll);
  }
  return Error(Errc::Timeout, fmt::format("nvidia-persistenced (process {}) does not end", pid))
      .advise(fmt::format("sudo kill -9 {}", pid));
}

// Daemons of the driver that no unit has, such as nvidia-gridd.
std::vector<std::uint32_t> service_processes(const sys::Host& host) {
  std::vector<std::uint32_t> pids;
  for (const auto& holder : vfio::find_holders(host, nodes_that_hold_driver(host))) {
    const bool ours = preflight::is_service_process(holder) && holder.unit.empty() &&
                      !holder.name.starts_with("gantry");
    if (ours && (pids.empty() || pids.back() != holder.pid)) pids.push_back(holder.pid);
  }
  return pids;
}

Status stop_service_processes(SetupWork& work) {
  for (const auto pid : service_processes(work.host)) GANTRY_CHECK(work.effects.terminate(pid));
  for (int polls = 0; polls < kDaemonPolls; ++polls) {
    if (service_processes(work.host).empty()) return {};
    work.effects.pause(kDaemonPoll);
  }
  return Error(Errc::Timeout, fmt::format("process {}, a service of the driver, does not end",
                                          service_processes(work.host).front()));
}

// A program of this version, with its libraries.
ProgramCall own_program(const InstallRecord& record, std::string_view program,
                        std::vector<std::string> options) {
  const Layout layout(record.directory);
  ProgramCall call{.words = {{.text = "env"},
                             {.text = "LD_LIBRARY_PATH=", .path = layout.lib64()},
                             {.path = fmt::format("{}/{}", layout.bin(), program)}},
                   .needs = {},
                   .deadline = kServiceDeadline};
  for (auto& option : options) call.words.push_back({.text = std::move(option)});
  return call;
}

// `lost`: what is missing without it.
void start_program(SetupWork& work, const ProgramCall& call, std::string_view program,
                   std::string_view lost) {
  if (ends_with_our_pod(work.host)) {
    work.note(
        fmt::format("{} is not started, because it would end with this pod, so that {}; on "
                    "the node: sudo {}",
                    program, lost, to_text(call)));
    return;
  }
  const auto started = work.effects.run(call);
  if (!started.ok())
    work.note(
        fmt::format("{} does not start, so that {}: {}", program, lost, started.error().cause()));
}

// Keeps the state of GPUs that no process has open, so that the first call does not take seconds.
void start_daemon(SetupWork& work, const InstallRecord& record) {
  const auto program = Layout(record.directory).bin() + "/nvidia-persistenced";
  if (!record.has_files() || !work.host.exists(program) || persistence_daemon(work.host) != 0)
    return;
  const auto version = preflight::DriverVersion::parse(record.version);
  std::vector<std::string> options;
  if (version && version->branch >= kUvmPersistenceSince)
    options.emplace_back("--uvm-persistence-mode");
  start_program(work, own_program(record, kPersistenceDaemon, std::move(options)),
                kPersistenceDaemon, "the first use of a GPU may take seconds");
}

void start_licence_daemon(SetupWork& work, const InstallRecord& record) {
  const auto program = Layout(record.directory).bin() + "/nvidia-gridd";
  if (record.source != preflight::Source::Grid || !work.host.exists(program)) return;
  start_program(work, own_program(record, "nvidia-gridd", {}), "nvidia-gridd",
                "there is no licence");
}

// CUDA on machines with NVSwitches fails with error 802 without it. It must have the driver's
// version and comes in a package of its own.
void start_fabric_manager(SetupWork& work) {
  if (work.facts == nullptr || work.facts->nvswitches == 0) return;
  if (!has_unit_file(work.host, kFabricUnit)) {
    work.note(
        fmt::format("this machine has NVSwitches: install the fabric manager of version {} "
                    "(package nvidia-fabricmanager), else CUDA fails with error 802",
                    work.target().version));
    return;
  }
  if (!has_running_systemd(work.host)) return;
  const auto started = work.effects.run(systemctl("restart", kFabricUnit));
  if (!started.ok())
    work.note(
        fmt::format("the fabric manager does not start; it must have the version {} of the "
                    "driver: {}",
                    work.target().version, started.error().cause()));
}

Status start_stopped(SetupWork& work, const InstallRecord& record) {
  for (const auto& service : work.journal.services) {
    if (service == kPersistenceDaemon) {
      start_daemon(work, record);
      continue;
    }
    const auto started = work.effects.run(systemctl("start", service));
    if (!started.ok())
      work.note(fmt::format("{} was running before and does not start: {}", service,
                            started.error().cause()));
  }
  return {};
}

}  // namespace

Status check_idle(SetupWork& work) {
  const auto loaded = procfs::read_version(work.host);
  if (!loaded.ok()) return {};  // nothing is loaded
  return await_idle(work.host,
                    {.drain = work.request.drain,
                     .terminate = work.request.terminate,
                     .seconds = work.request.drain_seconds,
                     .accepts_unknown = accepts_unknown_users(work.request.ignore),
                     .stop = work.options.stop},
                    work.effects, work.options.progress);
}

Status stop_services(SetupWork& work) {
  if (has_running_systemd(work.host)) {
    for (const auto unit : preflight::driver_services()) {
      if (!has_unit_file(work.host, unit) || !is_active(work, unit)) continue;
      GANTRY_CHECK(note_service(work, unit));
      GANTRY_CHECK(work.effects.run(systemctl("stop", unit)));
    }
  }
  GANTRY_CHECK(stop_daemon(work));
  return stop_service_processes(work);
}

Status undo_stop_services(SetupWork& work) {
  return work.before() == nullptr ? Status() : start_stopped(work, *work.before());
}

Status start_services(SetupWork& work) {
  GANTRY_CHECK(start_stopped(work, work.target()));
  const auto& services = work.journal.services;
  const bool by_unit =
      std::find(services.begin(), services.end(), "nvidia-persistenced.service") != services.end();
  if (!by_unit) start_daemon(work, work.target());
  start_licence_daemon(work, work.target());
  start_fabric_manager(work);
  return {};
}

// The daemon of the new version; the services of the old one are started when its modules are back.
Status undo_start_services(SetupWork& work) {
  GANTRY_CHECK(stop_daemon(work));
  return stop_service_processes(work);
}

}  // namespace gantry::driver_setup
