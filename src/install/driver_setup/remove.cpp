// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/remove.hpp"

#include "base/core/text.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/apply_internal.hpp"
#include "install/driver_setup/container_lock.hpp"
#include "install/driver_setup/idle.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>

namespace gantry::driver_setup {
namespace {

enum class RemovalPart : std::uint8_t { Kernel, Files };  // Kernel: needs the GPUs for itself

struct Removal {
  const char* text;
  Status (*act)(SetupWork& work);
  RemovalPart part;
};

Status take_out_of_loader_cache(SetupWork& work) {
  return work.target().has_files() ? undo_loader_cache(work) : Status();
}

Status forget_cdi(SetupWork& work) {
  if (!work.target().made_cdi) return {};
  const auto done = work.effects.remove_cdi();
  if (!done.ok()) work.note(fmt::format("the CDI specification stays: {}", done.error().text()));
  return {};
}

Status remove_versions(SetupWork& work) {
  if (!work.target().has_files()) return {};
  const auto names = work.host.list(work.layout.versions());
  for (const auto& name : names.ok() ? *names : std::vector<std::string>{}) {
    const bool partial = name.starts_with('.') && name.ends_with(".partial");
    if (partial || is_version_name(name))
      GANTRY_CHECK(work.effects.remove_tree(work.layout.version(name)));
  }
  return {};
}

Status remove_all_created(SetupWork& work) {
  GANTRY_CHECK(remove_created(work, work.target().created));
  return move_back(work, work.target().moved_aside);
}

Status remove_state(SetupWork& work) {
  GANTRY_CHECK(work.effects.remove_tree(std::string(kStaging)));
  GANTRY_CHECK(work.effects.remove_tree(std::string(kDownloads)));
  return work.effects.remove(std::string(kInstalledPath));
}

// In this order: what can refuse comes first, and the record last.
constexpr std::array kRemovals{
    Removal{"stop the driver's services", stop_services, RemovalPart::Kernel},
    Removal{"unload the driver's modules", unload_modules, RemovalPart::Kernel},
    Removal{"remove the device nodes", remove_nodes, RemovalPart::Kernel},
    Removal{"restore the kernel's directory of firmware", undo_firmware_path, RemovalPart::Files},
    Removal{"remove the packages", undo_packages, RemovalPart::Files},
    Removal{"take the libraries out of the loader cache", take_out_of_loader_cache,
            RemovalPart::Files},
    Removal{"remove the CDI specification", forget_cdi, RemovalPart::Files},
    Removal{"remove the driver's files", remove_versions, RemovalPart::Files},
    Removal{"remove links, unit and hooks", remove_all_created, RemovalPart::Files},
    Removal{"forget the driver", remove_state, RemovalPart::Files},
};

bool concerns(const Removal& removal, const InstallRecord& record) {
  if (removal.act == undo_packages) return !record.removal.empty();
  if (removal.act == forget_cdi) return record.made_cdi;
  if (removal.act == undo_firmware_path) return record.set_firmware_path;
  if (removal.act == take_out_of_loader_cache || removal.act == remove_versions)
    return record.has_files();
  return true;
}

Status run_removals(SetupWork& work, RemovalPart part, std::vector<std::string>& done) {
  for (const auto& removal : kRemovals) {
    if (removal.part != part || !concerns(removal, work.target())) continue;
    GANTRY_CHECK(work.options.check_stop());
    work.progress(removal.text);
    GANTRY_CHECK(removal.act(work).in(removal.text));
    done.emplace_back(removal.text);
  }
  return {};
}

Status close_removal(const sys::Host& host, InstallEffects& effects) {
  GANTRY_CHECK(effects.remove(std::string(kJournalPath)));
  return remove_empty_state(host, effects);
}

// Nothing has been changed yet.
Status before_removal(const SetupOptions& options, const Status& status) {
  const auto stopped = options.check_stop();
  if (status.ok() || stopped.ok()) return status;
  return Error(Errc::Timeout, fmt::format("{}; the driver is as it was", stopped.error().text()));
}

Error not_done(const SetupOptions& options, const Error& error) {
  const auto stopped = options.check_stop();
  if (!stopped.ok())
    return Error(Errc::Timeout,
                 fmt::format("{}; the driver is not removed completely", stopped.error().text()))
        .advise("what is left is removed by: sudo gantry driver remove");
  return Error(error)
      .in("the driver is not removed")
      .advise(error.remedy().empty() ? "when the cause is gone, run the same command again" : "");
}

// An installation that did not end: what it did is not in the record.
Status take_back_unfinished(const sys::Host& host, InstallJournal& journal,
                            const SetupOptions& options, InstallEffects& effects,
                            SetupReport& report) {
  SetupWork work(host, options, journal, effects);
  const auto act = [&] { return go_back(work); };
  GANTRY_CHECK(options.exclusively ? options.exclusively(act) : act());
  report.done.push_back(
      fmt::format("take back the unfinished installation of {}", describe(journal.target)));
  report.changed = true;
  return {};
}

Status remove_record(const sys::Host& host, const InstallRecord& record,
                     const RemoveOptions& remove, const SetupOptions& options,
                     InstallEffects& effects, SetupReport& report) {
  if (procfs::read_version(host).ok()) {
    GANTRY_CHECK(before_removal(options, await_idle(host,
                                                    {.drain = remove.drain,
                                                     .terminate = remove.terminate,
                                                     .seconds = remove.drain_seconds,
                                                     .accepts_unknown = remove.accepts_unknown,
                                                     .stop = options.stop},
                                                    effects, options.progress)));
  }
  InstallJournal journal{.command = "remove", .target = record, .before = std::nullopt};
  SetupWork work(host, options, journal, effects);
  GANTRY_CHECK(save_journal(work));
  const auto act = [&] { return run_removals(work, RemovalPart::Kernel, report.done); };
  auto status = options.exclusively ? options.exclusively(act) : act();
  if (status.ok()) status = run_removals(work, RemovalPart::Files, report.done);
  if (!status.ok()) return not_done(options, status.error());
  report.changed = true;
  report.notes = std::move(work.notes);
  return {};
}

}  // namespace

Result<std::vector<std::string>> preview_remove(const sys::Host& host) {
  GANTRY_TRY(const auto record, read_record(host));
  GANTRY_TRY(const auto journal, read_install_journal(host));
  std::vector<std::string> steps;
  if (journal && journal->command == "install" && !is_recorded(*journal, record))
    steps.push_back(
        fmt::format("take back the unfinished installation of {}", describe(journal->target)));
  if (!record) return steps;
  for (const auto& removal : kRemovals) {
    if (concerns(removal, *record)) steps.emplace_back(removal.text);
  }
  return steps;
}

Result<SetupReport> remove(const sys::Host& host, const RemoveOptions& remove,
                           const SetupOptions& options, InstallEffects& effects) {
  GANTRY_TRY(const auto lock, lock_driver_setup(host));
  SetupReport report;
  GANTRY_TRY(auto journal, read_install_journal(host));
  GANTRY_TRY(auto record, read_record(host));
  std::unique_ptr<ContainerLock> container;
  if (record && record->source != preflight::Source::NvidiaContainer) {
    GANTRY_TRY(container, ContainerLock::take(host));
  }
  if (journal && journal->command == "install" && !is_recorded(*journal, record)) {
    GANTRY_CHECK(take_back_unfinished(host, *journal, options, effects, report));
    GANTRY_TRY(record, read_record(host));
  }
  if (!record && !journal) {
    GANTRY_CHECK(close_removal(host, effects));
    return Error(Errc::NotFound, "Gantry has installed no driver on this machine");
  }
  if (record) {
    report.record = *record;
    GANTRY_CHECK(remove_record(host, *record, remove, options, effects, report));
  }
  GANTRY_CHECK(close_removal(host, effects));
  const auto told = effects.tell_agent();
  if (!told.ok()) report.notes.push_back(told.error().text());
  return report;
}

}  // namespace gantry::driver_setup
