// SPDX-License-Identifier: Apache-2.0
// The commands with which a distribution's own tools install the driver, and mistakes around them
// that have a known cause. Pure: nothing is run here.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"
#include "install/driver_package/os_release.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_package {

enum class PackageTool : std::uint8_t { Apt, Dnf, Tdnf, Zypper };
std::string_view to_string(PackageTool tool);  // "apt-get", "dnf", "tdnf", "zypper"

enum class PackageStepKind : std::uint8_t {
  Key,         // gets the key that signs the repository, and lets the package tool trust it
  Repository,  // adds the repository, or what it needs
  Refresh,     // reads the repositories
  Headers,     // headers of the running kernel, with which the module is built
  Select,      // chooses the branch
  Install,     // the driver
  Remove,      // takes one of these back
};

struct PackageStep {
  PackageStepKind kind = PackageStepKind::Install;
  std::vector<std::string> argv;  // run without a shell, in the machine's root
  // A file to write instead of a command; then argv is empty.
  std::string file;
  std::string content;
  std::string what;  // "Install the driver of branch 580"
  // Remove: packages to name behind argv.
  std::vector<std::string> packages{};
  // The file that the command makes, or takes back: the list of a repository.
  std::string list{};
  // Key: where the repository has its key, or a list of yum's that says where it is. `file` gets
  // the key if its fingerprint is one that was named; armored, or binary if it ends with ".gpg".
  std::string key_url{};
  bool operator==(const PackageStep&) const = default;
};

struct PackagePlan {
  PackageTool tool = PackageTool::Apt;
  std::string distribution;           // "ubuntu2204": the name in NVIDIA's repository
  std::vector<PackageStep> steps;     // in order
  std::vector<std::string> packages;  // what Install installs; for removal
  std::vector<PackageStep> removal;   // takes back the driver and its repository
  std::vector<std::string> notes;     // what the administrator should know
  bool operator==(const PackagePlan&) const = default;
};

struct PackageRequest {
  std::string version;  // "580", "580.159.04", "" = the distribution's choice
  model::ModuleFlavour flavour =
      model::ModuleFlavour::Unknown;  // Unknown: what the branch has by default
  std::string kernel;                 // of the running kernel, uname -r
  std::string architecture = "x86_64";
  // A mirror, with the same paths below it, of the server that the distribution's plan names:
  // https://developer.download.nvidia.com/compute/cuda/repos, for SUSE https://download.nvidia.com,
  // for Debian's own packages http://deb.debian.org/debian. "" = that server.
  std::string repository{};
};

// Unsupported, with what to use instead, for distributions that have no packages of this driver.
// Invalid for versions and kernels that are none.
Result<PackagePlan> plan_packages(const OsRelease& release, const PackageRequest& request);

// The commands as a person can paste them, one a line.
std::string to_text(const PackagePlan& plan);

// "580.159.04" for "3:580.159.04-1~deb12u1" and "580.159.04_k6.4.0_150600.21-1"; "" for others.
std::string driver_version_of(std::string_view package_version);

// A web page of NVIDIA's was given to zypper as a repository, as in
// `zypper ar https://developer.nvidia.com/cuda-gpus nvidia`, or the repository of another version.
// Returns the sentence with the right URL; nullopt if the text has no such URL. `text`: a URL, a
// command or zypper's output.
std::optional<Error> recognise_wrong_suse_url(std::string_view text, const OsRelease& release);

// A package tool refuses a repository or a package that is not signed, or by a key that the machine
// does not trust. Returns the sentence; nullopt if the output has another reason. A wrong clock,
// too, makes signatures invalid: ask recognise_clock_fault first.
std::optional<Error> recognise_signature_fault(std::string_view output);

// apt refuses a repository because the machine's clock is wrong: "Release file for ... is not valid
// yet (invalid for another 2d 3h 4min 5s)" or "... is expired (invalid since ...)". The sentence
// has the drift. `now`: the machine's time, in seconds since 1970.
struct ClockFault {
  enum class Direction : std::uint8_t { Behind, MaybeAhead };  // of the machine's clock
  Direction direction = Direction::Behind;
  std::int64_t seconds = 0;  // by at least these
  std::string repository;    // as apt names it
  std::string sentence;      // cause
  std::string remedy;
};
std::optional<ClockFault> recognise_clock_fault(std::string_view output, std::int64_t now);

}  // namespace gantry::driver_package
