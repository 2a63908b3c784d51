// SPDX-License-Identifier: Apache-2.0
// The generations of SUSE's packages [S]: G04 is branch 390, G05 is 470 and the branches between,
// G06 begins after that and ends with 580, and G07 has the open module only.
#include "base/core/text.hpp"
#include "install/driver_package/distribution_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::driver_package {
namespace {

constexpr std::string_view kAlias = "nvidia";
constexpr std::string_view kList = "/etc/zypp/repos.d/nvidia.repo";

std::string_view generation_of(unsigned branch) {
  if (branch <= 390) return "G04";
  if (branch <= 470) return "G05";
  return branch <= 580 ? "G06" : "G07";
}

// "default" for "6.4.0-150600.23-default"; the modules are built for each of them.
Result<std::string> kernel_flavour(const std::string& kernel) {
  constexpr std::array<std::string_view, 5> kFlavours = {"default", "azure", "64kb", "longterm",
                                                         "preempt"};
  const auto flavour = kernel.substr(kernel.rfind('-') + 1);
  if (std::ranges::find(kFlavours, flavour) != kFlavours.end()) return flavour;
  return Error(Errc::Unsupported, fmt::format("SUSE has no modules for the kernel {}", kernel))
      .advise("install a .run file: `gantry driver install --source run`");
}

// The name and, behind it, the version if it is given.
std::vector<std::string> packages_of(const PackageChoice& choice, std::string_view flavour) {
  const auto generation = generation_of(choice.number);
  if (generation == "G04" || generation == "G05")
    return {fmt::format("nvidia-gfx{}-kmp-{}", generation, flavour),
            fmt::format("nvidia-compute{}", generation)};
  // The package "meta" brings module and libraries of one version.
  const auto module = choice.open ? fmt::format("nvidia-open-driver-{}-signed-kmp-meta", generation)
                                  : fmt::format("nvidia-driver-{}-kmp-meta", generation);
  return {module, fmt::format("nvidia-compute-utils-{}", generation)};
}

// Without a range, zypper takes the newest driver of the generation. The version of a module has
// the kernel's behind it, so only the libraries can be asked for by version; they need a module of
// the same one.
std::vector<std::string> with_range(std::vector<std::string> packages,
                                    const PackageChoice& choice) {
  if (!choice.version.empty()) {
    packages.back() += "=" + choice.version;
  } else if (choice.branch_given) {
    for (auto& package : packages)
      if (!package.ends_with("-meta")) package += fmt::format("<{}", choice.number + 1);
  }
  return packages;
}

}  // namespace

Result<std::string> suse_repository(const OsRelease& release, std::string_view server) {
  const auto major = major_version(release);
  const auto dot = release.version_id.find('.');
  const auto minor = dot == std::string::npos ? "" : release.version_id.substr(dot + 1);
  if (release.id == "opensuse-tumbleweed") return fmt::format("{}/opensuse/tumbleweed", server);
  if (release.id == "opensuse-leap" && major >= 15 && major <= 16 && !minor.empty())
    return fmt::format("{}/opensuse/leap/{}", server, release.version_id);
  const bool enterprise = release.id == "sles" || release.id == "sled" || release.id == "sle-hpc" ||
                          release.id == "sles_sap";
  if (enterprise && major == 15)
    return fmt::format("{}/suse/sle15{}", server,
                       minor.empty() || minor == "0" ? "" : "sp" + minor);
  if (enterprise && major == 16)
    return fmt::format("{}/suse/sle16{}", server, minor.empty() || minor == "0" ? "" : "." + minor);
  return Error(Errc::NotFound, fmt::format("NVIDIA's server has no repository for {} {}",
                                           release.id, release.version_id));
}

Result<PackagePlan> plan_suse(const OsRelease& release, const PackageChoice& choice) {
  const auto server = choice.mirror_of(kSuseRepositories);
  const auto url = suse_repository(release, server);
  if (!url.ok())
    return unsupported(release, "packages are known for SLES and openSUSE Leap 15 and 16",
                       "install a .run file: `gantry driver install --source run`");
  if (choice.architecture != "x86_64")  // only the CUDA repository has them [S]
    return unsupported(release, "this repository has packages for x86_64 only",
                       "add https://developer.download.nvidia.com/compute/cuda/repos/sles15/sbsa/ "
                       "by hand, or install a .run file");
  const auto generation = generation_of(choice.number);
  if (choice.open && (generation == "G04" || generation == "G05"))
    return unsupported(release, fmt::format("branch {} has no open module", choice.branch),
                       "ask for the proprietary one, or for a later branch");
  if (!choice.open && generation == "G07")
    return unsupported(
        release, fmt::format("the packages of branch {} have the open module only", choice.branch),
        "ask for the open module, or for branch 580");
  GANTRY_TRY(const auto flavour, kernel_flavour(choice.kernel));
  PackagePlan plan{.tool = PackageTool::Zypper,
                   .distribution = url->substr(server.size() + 1),
                   .packages = packages_of(choice, flavour)};
  const auto wanted = with_range(plan.packages, choice);
  const auto alias = std::string(kAlias);
  // zypper answers its question about an unknown key with "no", so it takes only one of rpm's.
  auto add = command(StepKind::Repository, "Add NVIDIA's repository",
                     {"zypper", "--non-interactive", "addrepo", "--refresh", *url, alias});
  add.list = kList;
  plan.steps =
      trust_rpm_key("NVIDIA's repository", *url + "/repodata/repomd.xml.key", std::string(kRpmKey));
  plan.steps.push_back(std::move(add));
  plan.steps.push_back(command(StepKind::Refresh, "Read the repository",
                               {"zypper", "--non-interactive", "refresh", alias}));
  plan.steps.push_back(command(
      StepKind::Install,
      fmt::format("Install the driver {}", choice.version.empty() ? choice.branch : choice.version),
      joined({"zypper", "--non-interactive", "install", "--auto-agree-with-licenses"}, wanted)));
  auto remove = command(StepKind::Remove, "Remove the repository",
                        {"zypper", "--non-interactive", "removerepo", alias});
  remove.list = kList;
  plan.removal = {
      remove_packages({"zypper", "--non-interactive", "remove", "--clean-deps"}, plan.packages),
      std::move(remove), remove_list("Remove the key", std::string(kRpmKey))};
  plan.notes = {"Installing accepts NVIDIA's licence.", key_leftovers()};
  if (choice.open)
    plan.notes.emplace_back("SUSE signs these modules, so they load under Secure Boot.");
  return plan;
}

}  // namespace gantry::driver_package
