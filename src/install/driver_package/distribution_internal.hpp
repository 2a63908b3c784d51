// SPDX-License-Identifier: Apache-2.0
// What the plans of all distributions have in common.
#pragma once

#include "install/driver_package/distribution.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_package {

// NVIDIA's repositories in the form that SUSE's documentation uses, and those for all
// distributions.
inline constexpr std::string_view kSuseRepositories = "https://download.nvidia.com";
inline constexpr std::string_view kCudaRepositories =
    "https://developer.download.nvidia.com/compute/cuda/repos";

// The request, checked: every word that becomes part of a command or a URL is a plain one.
struct PackageChoice {
  std::string version;  // "580.159.04"; "" if only the branch is given
  std::string branch;   // "580"
  unsigned number = 0;  // 580
  bool branch_given = false;
  bool open = false;
  std::string kernel;
  std::string architecture;                           // "x86_64", "aarch64"
  std::string repository;                             // without a slash at the end; "" = none
  std::string_view repository_architecture() const {  // in kCudaRepositories
    return architecture == "aarch64" ? "sbsa" : "x86_64";
  }
  std::string mirror_of(std::string_view server) const {
    return repository.empty() ? std::string(server) : repository;
  }
};

using Command = std::vector<std::string>;
using StepKind = PackageStepKind;

inline PackageStep command(PackageStepKind kind, std::string what, Command argv) {
  return {.kind = kind, .argv = std::move(argv), .what = std::move(what)};
}
inline PackageStep write_file(PackageStepKind kind, std::string what, std::string file,
                              std::string content) {
  return {.kind = kind,
          .file = std::move(file),
          .content = std::move(content),
          .what = std::move(what)};
}
// For rpm: the key in a file of ours, then in rpm's database.
std::vector<PackageStep> trust_rpm_key(std::string_view what, const std::string& url,
                                       const std::string& file);
std::string key_leftovers();  // a note
inline constexpr std::string_view kRpmKey = "/etc/pki/rpm-gpg/gantry-nvidia.asc";

// Takes back what a command made whose list is this file.
inline PackageStep remove_list(std::string what, const std::string& list) {
  return {.kind = PackageStepKind::Remove,
          .argv = {"rm", "-f", list},
          .what = std::move(what),
          .list = list};
}
inline PackageStep remove_packages(Command argv, std::vector<std::string> packages) {
  return {.kind = PackageStepKind::Remove,
          .argv = std::move(argv),
          .what = "Remove the driver",
          .packages = std::move(packages)};
}
inline Command joined(Command argv, const std::vector<std::string>& more) {
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

// The major version: 15 for "15.6", 0 for "".
unsigned major_version(const OsRelease& release);
Error unsupported(const OsRelease& release, std::string_view why, std::string_view remedy);

Result<PackagePlan> plan_debian(const OsRelease& release, const PackageChoice& choice);
Result<PackagePlan> plan_ubuntu(const OsRelease& release, const PackageChoice& choice);
Result<PackagePlan> plan_enterprise_linux(const OsRelease& release, const PackageChoice& choice);
Result<PackagePlan> plan_fedora(const OsRelease& release, const PackageChoice& choice);
Result<PackagePlan> plan_amazon(const OsRelease& release, const PackageChoice& choice);
Result<PackagePlan> plan_azure(const OsRelease& release, const PackageChoice& choice);
Result<PackagePlan> plan_suse(const OsRelease& release, const PackageChoice& choice);

// "https://download.nvidia.com/suse/sle15sp6"; NotFound for a distribution that is not of SUSE's or
// has no version.
Result<std::string> suse_repository(const OsRelease& release, std::string_view server);

}  // namespace gantry::driver_package
