// SPDX-License-Identifier: Apache-2.0
// The work that is under way: written by rename before each step, removed at its end. A program
// that finds it knows that another one was killed, how far that one came, and the way back.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "install/driver_setup/install_plan.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::driver_setup {

// Of a driver that Gantry did not install.
struct UnloadedModule {
  std::string name;  // as the kernel names it
  std::string path;  // of the file that was loaded, most likely; "" if it was not found
  bool operator==(const UnloadedModule&) const = default;
};

struct InstallJournal {
  std::string command;                  // "install", "remove"
  InstallRecord target;                 // remove: what is removed
  std::optional<InstallRecord> before;  // what was installed when the work began
  std::vector<InstallStep> steps;
  std::string kernel;
  std::size_t step = 0;    // begun, and perhaps done
  bool backwards = false;  // all steps up to `step` are being undone

  // Noted before each change, so that it can be undone. `created` and the rest of what `target`
  // has to remember is noted there.
  bool placed_version = false;                   // DIR/.versions/NAME was not there before
  bool placed_modules = false;                   // nor were the modules of this kernel
  bool unloaded = false;                         // a driver was loaded, and is unloaded
  std::vector<UnloadedModule> unloaded_modules;  // each after those that it uses
  // target.removal leaves what was there before, also in a run after one that was killed.
  bool noted_packages = false;
  std::vector<std::string> services;       // stopped; started again at the end
  std::vector<std::string> licence_files;  // replaced: the old ones are in the staging directory
  bool operator==(const InstallJournal&) const = default;
};

std::string to_json(const InstallJournal& journal);
// Corrupt if it is not what to_json writes. Bounded; accepts any bytes.
Result<InstallJournal> parse_install_journal(std::string text);
// nullopt if no work is under way. Corrupt, with a remedy, if the file cannot be understood.
Result<std::optional<InstallJournal>> read_install_journal(const sys::Host& host);

// Held while the driver is changed. Busy, with the process that has it, if another one is at work.
// The kernel releases it when the process ends.
Result<sys::UniqueFd> lock_driver_setup(const sys::Host& host);

}  // namespace gantry::driver_setup
