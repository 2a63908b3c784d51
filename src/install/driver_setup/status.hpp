// SPDX-License-Identifier: Apache-2.0
// What is installed, loaded and built, and work that did not end. Reads only.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/install_record.hpp"
#include "install/driver_setup/used_versions.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::driver_setup {

struct KernelStatus {
  std::string release;
  bool running = false;
  bool has_modules = false;  // of the installed driver
  std::string missing;       // why they cannot be built; "" if they can or are there
  bool operator==(const KernelStatus&) const = default;
};

struct DriverStatus {
  std::optional<InstallRecord> installed;
  std::optional<InstallJournal> unfinished;
  std::string loaded_version;         // "" if no driver is loaded
  std::vector<std::string> modules;   // of the driver, that are loaded
  std::vector<KernelStatus> kernels;  // that are installed on the machine
  std::vector<std::string> versions;  // names below DIR/.versions
  // Of these, those that are not the current one and that a process has mounted.
  std::map<std::string, VersionUser> used_versions;
  // What a person should do, one sentence each: "the machine will boot 6.1.0-22, for which ...".
  std::vector<std::string> notes;
};

Result<DriverStatus> read_status(const sys::Host& host);

std::string to_text(const DriverStatus& status);
std::string to_json(const DriverStatus& status);

}  // namespace gantry::driver_setup
