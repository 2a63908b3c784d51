// SPDX-License-Identifier: Apache-2.0
// One change of a machine's driver while it is under way, and its steps: what does each, and what
// undoes it. Every step looks at the machine first, so it can be repeated after a crash.
#pragma once

#include "install/driver_setup/install.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/kernel_module/loaded_modules.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

struct SetupWork {
  SetupWork(const sys::Host& machine, const SetupOptions& setup_options, InstallJournal& work,
            InstallEffects& actions)
      : host(machine),
        options(setup_options),
        journal(work),
        effects(actions),
        layout(work.target.directory) {}

  const sys::Host& host;
  const SetupOptions& options;
  InstallJournal& journal;
  InstallEffects& effects;
  Layout layout;
  bool keeps_journal = true;  // false: nothing is done that a crash could leave half done

  preflight::DriverRequest request{};              // empty on the way back
  const preflight::MachineFacts* facts = nullptr;  // nullptr on the way back
  const driver_package::PackagePlan* packages = nullptr;

  std::vector<std::string> notes{};
  VerifyReport verified{};

  const InstallRecord& target() const { return journal.target; }
  // What was there before, if its files are still known.
  const InstallRecord* before() const { return journal.before ? &*journal.before : nullptr; }
  void progress(std::string_view text) const {
    if (options.progress) options.progress(text);
  }
  void enter(SetupPhase phase) const {
    if (options.enter) options.enter(phase);
  }
  void note(std::string sentence) { notes.push_back(std::move(sentence)); }
  std::string staging() const;   // of this version
  std::string run_file() const;  // the archive on the machine
};

// The journal as it is now, on disk when this returns.
Status save_journal(SetupWork& work);

// Notes which of the path and the directories above it do not exist yet, on disk, before the caller
// makes them.
Status note_created(SetupWork& work, std::string_view path);
// The same, and writes the file. A file that somebody else made is left alone: Exists.
Status create_file(SetupWork& work, const std::string& path, std::string_view content,
                   unsigned mode);
Status create_link(SetupWork& work, const std::string& path, const std::string& target);
// Removes paths, the last first. A directory with other files stays.
Status remove_created(SetupWork& work, const std::vector<std::string>& paths);
// Directories that the links in DIR take the place of, and Google's cache file; and back.
Status move_aside(SetupWork& work, const std::string& path);
std::string aside_of(const std::string& path);  // where it is meanwhile
Status move_back(SetupWork& work, const std::vector<std::string>& paths);
// Whether Google's installer filled the directory.
bool is_googles(const sys::Host& host, const Layout& layout);
// What this work created: not what an earlier installation did.
std::vector<std::string> newly_created(const InstallJournal& journal);
std::vector<std::string> newly_moved(const InstallJournal& journal);

Status execute(SetupWork& work, const InstallStep& step);
Status undo(SetupWork& work, const InstallStep& step);

// Whether the installation came as far as its record, so that only its last steps are missing.
bool is_recorded(const InstallJournal& journal, const std::optional<InstallRecord>& record);

// Removes the lock and empty directories of our own, if nothing else is kept there.
Status remove_empty_state(const sys::Host& host, InstallEffects& effects);

// Loads what is recorded, if it is not; needs no journal. The lock is held.
Result<SetupReport> load_record(const sys::Host& host, const InstallRecord& record,
                                const SetupOptions& options, InstallEffects& effects);

// The steps, by what they are about. Each `undo_` belongs to the one above it.
Status unpack(SetupWork& work);
Status place_version(SetupWork& work);
Status undo_place_version(SetupWork& work);
Status build_for(SetupWork& work, const std::string& kernel);
Status copy_for(SetupWork& work, const std::string& kernel);
Status undo_modules(SetupWork& work, const std::string& kernel);
Status switch_version(SetupWork& work);
Status undo_switch_version(SetupWork& work);
Status clean_up(SetupWork& work);

Status run_packages(SetupWork& work);
Status undo_packages(SetupWork& work);

Status check_idle(SetupWork& work);
Status stop_services(SetupWork& work);
Status undo_stop_services(SetupWork& work);
Status start_services(SetupWork& work);
Status undo_start_services(SetupWork& work);

Status unload_modules(SetupWork& work);
Status undo_unload_modules(SetupWork& work);
// Of a driver that Gantry did not install: which modules are loaded, and from where, for the
// journal; and loads them again.
void note_foreign_modules(SetupWork& work, const std::string& release);
Status load_foreign_modules(SetupWork& work, const std::string& release);
// A file, after the modules of the kernel itself that it needs.
Status load_with_dependencies(SetupWork& work, const std::string& path, const std::string& options,
                              const std::string& release);
// Modules of the kernel itself that were not loaded before: noted in the journal, and unloaded
// again if nothing uses them.
std::string kernels_module_name(std::string_view path);
Status note_kernels_own(SetupWork& work, const std::vector<std::string>& names);
Status note_loaded_since(SetupWork& work, const std::vector<kernel_module::LoadedModule>& before);
void unload_kernels_own(SetupWork& work, std::vector<std::string> names);
Status set_firmware_path(SetupWork& work);
Status undo_firmware_path(SetupWork& work);
Status load_modules(SetupWork& work, const InstallRecord& record);
Status undo_load_modules(SetupWork& work);
Status make_nodes(SetupWork& work);
Status remove_nodes(SetupWork& work);

Status place_licence(SetupWork& work);
Status undo_licence(SetupWork& work);
Status update_loader_cache(SetupWork& work);
Status undo_loader_cache(SetupWork& work);
Status write_google_cache(SetupWork& work);
Status undo_google_cache(SetupWork& work);
// After `current` has changed: many libraries have their version in the name.
Status restore_loader_cache(SetupWork& work);
Status verify_target(SetupWork& work);
Status keep_at_boot(SetupWork& work);
Status record_target(SetupWork& work);
Status undo_record(SetupWork& work);
Status refresh_cdi(SetupWork& work);

}  // namespace gantry::driver_setup
