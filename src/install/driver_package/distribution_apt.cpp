// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "install/driver_package/distribution_internal.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::driver_package {
namespace {

// apt-get asks nothing; the kernel's headers come with what is recommended, not the desktop.
Command apt_get(const Command& words) {
  return joined({"env", "DEBIAN_FRONTEND=noninteractive", "apt-get"}, words);
}
Command apt_install(const std::vector<std::string>& packages) {
  return joined(apt_get({"install", "-y", "--no-install-recommends"}), packages);
}
PackageStep apt_refresh() {
  return command(StepKind::Refresh, "Read the repositories", apt_get({"update"}));
}
PackageStep apt_headers(const PackageChoice& choice) {  // [N]
  const auto package = "linux-headers-" + choice.kernel;
  return command(StepKind::Headers, "Install the headers of the running kernel",
                 apt_install({package, "gcc", "make"}));
}
PackageStep apt_remove_packages(const std::vector<std::string>& packages) {
  return remove_packages(apt_get({"purge", "-y"}), packages);
}
// Without --autoremove, which would also take packages that were not needed before.
std::string apt_leftovers() {
  return "`gantry driver remove` also removes the packages that came with these and that nothing "
         "else needs.";
}
PackageStep apt_driver(const PackageChoice& choice, const std::vector<std::string>& packages) {
  return command(
      StepKind::Install,
      fmt::format("Install the driver {}", choice.version.empty() ? choice.branch : choice.version),
      apt_install(packages));
}

// apt takes a pattern as version: the part after the driver's is the package's own.
std::vector<std::string> with_version(std::vector<std::string> packages, std::string_view version) {
  if (version.empty()) return packages;
  for (auto& package : packages) package += fmt::format("={}-*", version);
  return packages;
}

// ---- Debian's own packages, all names [D]

struct DebianRelease {
  unsigned major;
  std::string_view codename;
  std::string_view components;
  unsigned branch;  // of nvidia-kernel-dkms and its like
  unsigned tesla;   // of nvidia-tesla-BRANCH-kernel-dkms; 0 = none
  bool open;        // nvidia-open-kernel-dkms
};
constexpr std::array kDebian = {
    DebianRelease{11, "bullseye", "contrib non-free", 470, 460, false},
    DebianRelease{12, "bookworm", "contrib non-free non-free-firmware", 535, 470, true},
    DebianRelease{13, "trixie", "contrib non-free non-free-firmware", 550, 535, true},
};
constexpr std::string_view kDebianArchive = "http://deb.debian.org/debian";
constexpr std::string_view kDebianList = "/etc/apt/sources.list.d/gantry-nvidia.list";

std::vector<std::string> debian_packages(const DebianRelease& debian, const PackageChoice& choice,
                                         bool tesla) {
  if (tesla) {
    const auto prefix = fmt::format("nvidia-tesla-{}", debian.tesla);
    return {prefix + "-kernel-dkms", prefix + "-smi",
            fmt::format("libnvidia-tesla-{}-cuda1", debian.tesla), "nvidia-modprobe",
            "nvidia-persistenced"};
  }
  std::vector<std::string> packages = {
      choice.open ? "nvidia-open-kernel-dkms" : "nvidia-kernel-dkms",
      "nvidia-smi",
      "libcuda1",
      "libnvidia-ptxjitcompiler1",
      "nvidia-modprobe",
      "nvidia-persistenced"};
  if (debian.open) packages.emplace_back("firmware-nvidia-gsp");
  return packages;
}

PackagePlan debian_archive_plan(const DebianRelease& debian, const PackageChoice& choice,
                                bool tesla) {
  PackagePlan plan{.tool = PackageTool::Apt, .distribution = fmt::format("debian{}", debian.major)};
  plan.packages = debian_packages(debian, choice, tesla);
  const auto list = std::string(kDebianList);
  plan.steps = {write_file(StepKind::Repository,
                           "Add Debian's repositories of software that is not free", list,
                           fmt::format("deb {} {} {}\n", choice.mirror_of(kDebianArchive),
                                       debian.codename, debian.components)),
                apt_refresh(), apt_headers(choice), apt_driver(choice, plan.packages)};
  plan.removal = {apt_remove_packages(plan.packages), remove_list("Remove the repositories", list)};
  plan.notes.emplace_back(apt_leftovers());
  if (!choice.version.empty())
    plan.notes.emplace_back(fmt::format(
        "Debian has one version of each branch: what is installed may be another one than {}.",
        choice.version));
  return plan;
}

// ---- NVIDIA's repository [N]: the key ring and a list, which NVIDIA's guide has as the way
// without the package cuda-keyring. That package also sets priorities for everything in the
// repository.

constexpr std::string_view kKeyRing = "/usr/share/keyrings/cuda-archive-keyring.gpg";

PackagePlan nvidia_repository_plan(const DebianRelease& debian, const PackageChoice& choice) {
  const auto distribution = fmt::format("debian{}", debian.major);
  const auto base = fmt::format("{}/{}/{}", choice.mirror_of(kCudaRepositories), distribution,
                                choice.repository_architecture());
  const auto list = fmt::format("/etc/apt/sources.list.d/cuda-{}-{}.list", distribution,
                                choice.repository_architecture());
  const auto ring = std::string(kKeyRing);
  const auto pinning = fmt::format("nvidia-driver-pinning-{}",
                                   choice.version.empty() ? choice.branch : choice.version);
  PackagePlan plan{.tool = PackageTool::Apt, .distribution = distribution};
  plan.packages = {"nvidia-driver-cuda",
                   choice.open ? "nvidia-kernel-open-dkms" : "nvidia-kernel-dkms"};
  plan.steps = {
      {.kind = StepKind::Key,
       .file = ring,
       .what = "Get the key that signs NVIDIA's repository",
       .key_url = base + "/cuda-archive-keyring.gpg"},
      write_file(StepKind::Repository, "Add NVIDIA's repository", list,
                 fmt::format("deb [signed-by={}] {}/ /\n", ring, base)),
      apt_refresh(),
      apt_headers(choice),
      // Not verified for branches before 580.
      command(StepKind::Select, fmt::format("Stay with {}", pinning.substr(pinning.rfind('-') + 1)),
              apt_install({pinning})),
      apt_driver(choice, plan.packages)};
  plan.removal = {apt_remove_packages(joined(plan.packages, {pinning})),
                  remove_list("Remove the repository", list), remove_list("Remove the key", ring)};
  plan.notes.emplace_back(apt_leftovers());
  // [P] for Debian 11 and 12. The key of debian13 is another one; its fingerprint is not verified.
  if (debian.major < 13)
    plan.notes.emplace_back(
        "Public scripts agree that the fingerprint of NVIDIA's key is "
        "EB693B3035CD5710E231E123A4B469963BF863CC.");
  return plan;
}

}  // namespace

Result<PackagePlan> plan_debian(const OsRelease& release, const PackageChoice& choice) {
  const DebianRelease* debian = nullptr;
  for (const auto& known : kDebian)
    if (major_version(release) == known.major) debian = &known;
  if (debian == nullptr)
    return unsupported(release, "packages are known for Debian 11, 12 and 13",
                       "install a .run file: `gantry driver install --source run`");
  const bool own = (!choice.branch_given || choice.number == debian->branch) &&
                   (!choice.open || debian->open || !choice.branch_given);
  if (own) {
    auto adapted = choice;
    adapted.open = choice.open && debian->open && choice.branch_given;
    adapted.branch = fmt::format("{}", debian->branch);
    return debian_archive_plan(*debian, adapted, false);
  }
  if (choice.number == debian->tesla && !choice.open)
    return debian_archive_plan(*debian, choice, true);
  if (choice.number < 535)  // NVIDIA's repositories of Debian begin later. Not verified
    return unsupported(release,
                       fmt::format("there are no packages of branch {}{}", choice.branch,
                                   choice.open ? " with the open module" : ""),
                       fmt::format("use branch {}, or a .run file", debian->branch));
  return nvidia_repository_plan(*debian, choice);
}

// Canonical's packages [P]: modules that Canonical builds for each kernel and signs, so that they
// load under Secure Boot, and the server branches.
Result<PackagePlan> plan_ubuntu(const OsRelease& release, const PackageChoice& choice) {
  const auto major = major_version(release);
  if (major < 20 || major > 26 || !contains(release.version_id, "."))
    return unsupported(release, "packages are known for Ubuntu 20.04 to 26.04",
                       "install a .run file: `gantry driver install --source run`");
  if (choice.open && choice.number < 515)
    return unsupported(release, fmt::format("branch {} has no open module", choice.branch),
                       "ask for the proprietary one, or for a branch from 515 on");
  if (choice.number < 450)
    return unsupported(release, fmt::format("Ubuntu has no packages of branch {}", choice.branch),
                       "use branch 470 or later, or a .run file");
  std::string digits = release.version_id;
  std::erase(digits, '.');
  const auto open = choice.open ? "-open" : "";
  const auto modules =
      fmt::format("linux-modules-nvidia-{}-server{}-{}", choice.branch, open, choice.kernel);
  const std::vector<std::string> driver = {
      fmt::format("nvidia-headless-no-dkms-{}-server{}", choice.branch, open),
      fmt::format("nvidia-utils-{}-server", choice.branch)};
  PackagePlan plan{.tool = PackageTool::Apt, .distribution = "ubuntu" + digits};
  plan.packages = joined({modules}, driver);
  plan.steps = {apt_refresh(),
                apt_driver(choice, joined({modules}, with_version(driver, choice.version)))};
  plan.removal = {apt_remove_packages(plan.packages)};
  plan.notes = {
      apt_leftovers(), "Canonical signs these modules, so they load under Secure Boot.",
      fmt::format("If there is no package {}, the kernel is not one of Canonical's: install "
                  "linux-headers-{} and nvidia-dkms-{}-server{} instead.",
                  modules, choice.kernel, choice.branch, open)};
  if (!choice.repository.empty())
    plan.notes.emplace_back(
        "The packages come from the machine's own sources of Ubuntu; the mirror "
        "is not used.");
  return plan;
}

}  // namespace gantry::driver_package
