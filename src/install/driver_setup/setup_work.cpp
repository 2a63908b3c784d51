// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "install/driver_setup/setup_work_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::string_view kAsideEnd = ".before-gantry";

bool lists(const std::vector<std::string>& paths, std::string_view path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

}  // namespace

std::string SetupWork::staging() const {
  return fmt::format("{}/{}", kStaging, journal.target.name);
}

std::string SetupWork::run_file() const {
  return journal.target.archive.path;
}

Status save_journal(SetupWork& work) {
  if (!work.keeps_journal) return {};
  return work.effects.save(std::string(kJournalPath), to_json(work.journal), 0600)
      .in("writing the journal");
}

Status note_created(SetupWork& work, std::string_view path) {
  auto& created = work.journal.target.created;
  const auto before = created.size();
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part(path.substr(0, end));
    if (!lists(created, part) && !work.host.link_info(part).ok()) created.push_back(part);
    if (end == std::string_view::npos) break;
  }
  return created.size() == before ? Status() : save_journal(work);
}

Status create_file(SetupWork& work, const std::string& path, std::string_view content,
                   unsigned mode) {
  const auto old = work.host.read(path);
  if (old.ok() && *old == content) return {};
  GANTRY_CHECK(note_created(work, path));
  if (!lists(work.journal.target.created, path)) {
    return Error(Errc::Exists,
                 fmt::format("{} exists, and Gantry did not make it", work.host.outside(path)));
  }
  return work.effects.save(path, content, mode);
}

Status create_link(SetupWork& work, const std::string& path, const std::string& target) {
  const auto old = work.host.link(path);
  if (old.ok() && *old == target) return {};
  GANTRY_CHECK(note_created(work, path));
  if (!lists(work.journal.target.created, path)) {
    return Error(Errc::Exists,
                 fmt::format("{} exists, and Gantry did not make it", work.host.outside(path)))
        .advise("move it aside, or use another directory with --directory DIR");
  }
  const auto slash = path.rfind('/');
  GANTRY_CHECK(work.effects.make_directory(path.substr(0, slash)));
  return work.effects.make_link(path, target);
}

Status remove_created(SetupWork& work, const std::vector<std::string>& paths) {
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    const auto info = work.host.link_info(*path);
    const bool is_directory = info.ok() && info->kind == sys::FileKind::Directory;
    // Also a file that is not there: its temporary file may be.
    GANTRY_CHECK(is_directory ? work.effects.remove_directory(*path) : work.effects.remove(*path));
  }
  return {};
}

std::string aside_of(const std::string& path) {
  return path + std::string(kAsideEnd);
}

Status move_aside(SetupWork& work, const std::string& path) {
  auto& moved = work.journal.target.moved_aside;
  const auto info = work.host.link_info(path);
  if (!info.ok() || info->kind == sys::FileKind::Symlink) return {};
  const auto aside = aside_of(path);
  if (work.host.link_info(aside).ok())
    return Error(Errc::Exists, fmt::format("{} exists", work.host.outside(aside)));
  if (!lists(moved, path)) {
    moved.push_back(path);
    GANTRY_CHECK(save_journal(work));
  }
  return work.effects.rename(path, aside);
}

Status move_back(SetupWork& work, const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    const auto aside = aside_of(path);
    if (work.host.link_info(path).ok() || !work.host.link_info(aside).ok()) continue;
    GANTRY_CHECK(work.effects.rename(aside, path));
  }
  return {};
}

bool is_googles(const sys::Host& host, const Layout& layout) {
  return host.exists(layout.directory() + "/.cache");
}

std::vector<std::string> newly_moved(const InstallJournal& journal) {
  auto paths = journal.target.moved_aside;
  if (!journal.before) return paths;
  std::erase_if(paths,
                [&](const std::string& path) { return lists(journal.before->moved_aside, path); });
  return paths;
}

std::vector<std::string> newly_created(const InstallJournal& journal) {
  auto paths = journal.target.created;
  if (!journal.before) return paths;
  std::erase_if(paths,
                [&](const std::string& path) { return lists(journal.before->created, path); });
  return paths;
}

Status remove_empty_state(const sys::Host& host, InstallEffects& effects) {
  if (host.exists(kInstalledPath) || host.exists(kJournalPath)) return {};
  GANTRY_CHECK(effects.remove(std::string(kLockPath)));
  const std::string directory(parent_directory(kLockPath));
  GANTRY_CHECK(effects.remove_directory(directory));
  return effects.remove_directory(std::string(parent_directory(directory)));
}

bool is_recorded(const InstallJournal& journal, const std::optional<InstallRecord>& record) {
  return journal.command == "install" && record && *record == journal.target;
}

Status execute(SetupWork& work, const InstallStep& step) {
  switch (step.kind) {
    case StepKind::Unpack: return unpack(work);
    case StepKind::PlaceFiles: return place_version(work);
    case StepKind::BuildModules: return build_for(work, step.subject);
    case StepKind::CopyModules: return copy_for(work, step.subject);
    case StepKind::RunPackages: return run_packages(work);
    case StepKind::CheckIdle: return check_idle(work);
    case StepKind::StopServices: return stop_services(work);
    case StepKind::UnloadModules: return unload_modules(work);
    case StepKind::SwitchVersion: return switch_version(work);
    case StepKind::SetFirmwarePath: return set_firmware_path(work);
    case StepKind::LoadModules: return load_modules(work, work.target());
    case StepKind::MakeNodes: return make_nodes(work);
    case StepKind::PlaceLicence: return place_licence(work);
    case StepKind::StartServices: return start_services(work);
    case StepKind::UpdateLoaderCache: return update_loader_cache(work);
    case StepKind::WriteGoogleCache: return write_google_cache(work);
    case StepKind::Verify: return verify_target(work);
    case StepKind::KeepAtBoot: return keep_at_boot(work);
    case StepKind::Record: return record_target(work);
    case StepKind::RefreshCdi: return refresh_cdi(work);
    case StepKind::TellAgent: return work.effects.tell_agent();
    case StepKind::CleanUp: return clean_up(work);
  }
  return {};
}

Status undo(SetupWork& work, const InstallStep& step) {
  switch (step.kind) {
    case StepKind::PlaceFiles: return undo_place_version(work);
    case StepKind::BuildModules:
    case StepKind::CopyModules: return undo_modules(work, step.subject);
    case StepKind::RunPackages: return undo_packages(work);
    case StepKind::StopServices: return undo_stop_services(work);
    case StepKind::UnloadModules: return undo_unload_modules(work);
    case StepKind::SwitchVersion: return undo_switch_version(work);
    case StepKind::SetFirmwarePath: return undo_firmware_path(work);
    case StepKind::LoadModules: return undo_load_modules(work);
    case StepKind::PlaceLicence: return undo_licence(work);
    case StepKind::StartServices: return undo_start_services(work);
    case StepKind::UpdateLoaderCache: return undo_loader_cache(work);
    case StepKind::WriteGoogleCache: return undo_google_cache(work);
    case StepKind::Record: return undo_record(work);
    case StepKind::Unpack:  // with the staging directory
    case StepKind::CheckIdle:
    case StepKind::MakeNodes:  // with the modules
    case StepKind::Verify:
    case StepKind::KeepAtBoot:  // with all that was created
    case StepKind::RefreshCdi:
    case StepKind::TellAgent:
    case StepKind::CleanUp: return {};
  }
  return {};
}

}  // namespace gantry::driver_setup
