// SPDX-License-Identifier: Apache-2.0
// Where the files of an installed driver are. Each version is complete in a directory of its own,
// which never changes once it has its name; `current` is a link to the one that is in use:
//
//   DIR/.versions/580.159.04-0123456789ab-open/{bin,lib64,firmware,share,source,drivers/KERNEL}
//   DIR/current -> .versions/580.159.04-0123456789ab-open
//   DIR/bin -> current/bin, and so on: these links never change
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/preflight/driver_branches.hpp"

#include <array>
#include <string>
#include <string_view>

namespace gantry::driver_setup {

inline constexpr std::string_view kInstalledPath = "/var/lib/gantry/driver-install/installed.json";
inline constexpr std::string_view kJournalPath = "/var/lib/gantry/driver-install/journal.json";
inline constexpr std::string_view kLockPath = "/var/lib/gantry/driver-install/lock";
inline constexpr std::string_view kDownloads = "/var/lib/gantry/driver-install/downloads";
inline constexpr std::string_view kStaging = "/var/lib/gantry/driver-install/staging";

// What containers get of the driver; written by `gantry cdi refresh`.
inline constexpr std::string_view kSpecificationPath = "/var/run/cdi/nvidia.yaml";

// Directories of a version that DIR shows under the same name.
inline constexpr std::array<std::string_view, 5> kShownDirectories{"bin", "lib64", "firmware",
                                                                   "share", "drivers"};

// "580.159.04-0123456789ab-open". `digest`: of the package and all that changes it, hexadecimal.
std::string version_name(std::string_view version, std::string_view digest,
                         preflight::Flavour flavour);
// Whether a name could be one of ours. It becomes part of a path that is removed as a whole.
bool is_version_name(std::string_view name);

class Layout {
 public:
  explicit Layout(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string versions() const { return directory_ + "/.versions"; }
  std::string version(std::string_view name) const;  // DIR/.versions/NAME
  std::string partial(std::string_view name) const;  // the same while it is being filled
  std::string file_list(std::string_view name) const;
  std::string source(std::string_view name) const;
  std::string modules(std::string_view name, std::string_view kernel) const;
  std::string current() const { return directory_ + "/current"; }
  std::string shown(std::string_view part) const;  // DIR/lib64
  // Google's note of the kernel and the driver that its directory is for.
  std::string google_cache() const { return shown(".cache"); }
  std::string bin() const { return shown("bin"); }
  std::string lib64() const { return shown("lib64"); }
  std::string firmware() const { return shown("firmware"); }

 private:
  std::string directory_;
};

// Invalid if this cannot be the directory of the driver: it must be absolute, without "..", and not
// one that other software uses, such as /usr.
Status check_directory(std::string_view directory);

// Denied if a user other than root could put other files in the place of these: the kernel loads
// modules from there, and programs of root load libraries.
Status check_trusted_place(const sys::Host& host, std::string_view path);
// The same for a program that will run as root.
Status check_trusted_program(const sys::Host& host, std::string_view path);

}  // namespace gantry::driver_setup
