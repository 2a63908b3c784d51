// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "install/driver_package/distribution_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_package {
namespace {

Command dnf_install(const std::vector<std::string>& packages) {
  return joined({"dnf", "install", "-y"}, packages);
}
PackageStep dnf_refresh() {
  return command(StepKind::Refresh, "Forget what is known of the repositories",
                 {"dnf", "clean", "expire-cache"});
}
// dnf before version 5 has the commands of repositories in a package of its own.
PackageStep plugins() {
  return command(StepKind::Repository, "Install dnf's commands for repositories",
                 dnf_install({"dnf-plugins-core"}));
}
std::string repository_url(const PackageChoice& choice, std::string_view distribution) {
  return fmt::format("{}/{}/{}/cuda-{}.repo", choice.mirror_of(kCudaRepositories), distribution,
                     choice.repository_architecture(), distribution);
}
std::string list_file(std::string_view distribution) {
  return fmt::format("/etc/yum.repos.d/cuda-{}.repo", distribution);
}

// The list is ours, not the server's: dnf -y and tdnf -y trust whatever key a list names, and only
// a list says that signatures are checked at all.
std::vector<PackageStep> add_repository(const PackageChoice& choice,
                                        std::string_view distribution) {  // [N]
  const auto url = repository_url(choice, distribution);
  auto steps = trust_rpm_key("NVIDIA's packages", url, std::string(kRpmKey));
  const auto name = fmt::format("cuda-{}-{}", distribution, choice.architecture);
  steps.push_back(write_file(
      StepKind::Repository, "Add NVIDIA's repository", list_file(distribution),
      fmt::format("[{0}]\nname={0}\nbaseurl={1}\nenabled=1\ngpgcheck=1\ngpgkey=file://{2}\n", name,
                  url.substr(0, url.rfind('/')), kRpmKey)));
  return steps;
}

// `version`: "580.159.04", or a pattern.
std::vector<std::string> driver_packages(const PackageChoice& choice, std::string_view version) {
  std::vector<std::string> packages = {
      // [N]: the driver without a desktop
      "nvidia-driver-cuda", choice.open ? "kmod-nvidia-open-dkms" : "kmod-nvidia-latest-dkms"};
  if (version.empty()) return packages;
  for (auto& package : packages) package += fmt::format("-{}", version);
  return packages;
}
PackageStep dnf_driver(const PackageChoice& choice, std::string_view version) {
  return command(
      StepKind::Install,
      fmt::format("Install the driver {}", choice.version.empty() ? choice.branch : choice.version),
      dnf_install(driver_packages(choice, version)));
}

PackageStep dnf_headers(const PackageChoice& choice) {  // [N]
  return command(StepKind::Headers, "Install the headers of the running kernel",
                 dnf_install({"kernel-devel-" + choice.kernel, "kernel-headers", "gcc", "make"}));
}

// The streams of NVIDIA's module [N]: BRANCH-open and BRANCH-dkms are built on the machine.
std::vector<PackageStep> select_stream(const PackageChoice& choice) {
  const auto stream =
      fmt::format("nvidia-driver:{}-{}", choice.branch, choice.open ? "open" : "dkms");
  return {command(StepKind::Select, "Leave the stream of another branch",
                  {"dnf", "module", "reset", "-y", "nvidia-driver"}),
          command(StepKind::Select, fmt::format("Choose {}", stream),
                  {"dnf", "module", "enable", "-y", stream})};
}

std::vector<PackageStep> dnf_removal(const PackageChoice& choice, std::string_view distribution,
                                     bool streams) {
  std::vector<PackageStep> steps = {
      remove_packages({"dnf", "remove", "-y"}, driver_packages(choice, ""))};
  // As `dnf module reset`, which leaves the file and needs every repository.
  if (streams)
    steps.push_back(remove_list("Leave the stream", "/etc/dnf/modules.d/nvidia-driver.module"));
  steps.push_back(remove_list("Remove the repository", list_file(distribution)));
  steps.push_back(remove_list("Remove the key", std::string(kRpmKey)));
  return steps;
}

std::string key_note() {  // [P]
  return "Public scripts agree that the fingerprint of NVIDIA's key D42D0685 is "
         "610C7B14E068A878070DA4E99CD0A493D42D0685.";
}

// A package by its URL, which dnf by itself installs without looking at its signature.
std::vector<PackageStep> add_epel_of_fedora(unsigned major) {  // [P]
  constexpr std::string_view kEpel = "https://dl.fedoraproject.org/pub/epel";
  auto steps = trust_rpm_key("EPEL", fmt::format("{}/RPM-GPG-KEY-EPEL-{}", kEpel, major),
                             "/etc/pki/rpm-gpg/gantry-epel.asc");
  steps.push_back(
      command(StepKind::Repository, "Add EPEL, which has DKMS",
              dnf_install({"--setopt=localpkg_gpgcheck=1",
                           fmt::format("{}/epel-release-latest-{}.noarch.rpm", kEpel, major)})));
  return steps;
}

// DKMS is in EPEL, and what it needs in the repository for developers [N] [P].
std::vector<PackageStep> dkms_sources(const OsRelease& release, const PackageChoice& choice) {
  const auto major = major_version(release);
  Command developers = {"dnf", "config-manager", "--set-enabled",
                        major == 8 ? "powertools" : "crb"};
  std::string epel = "epel-release";
  if (release.id == "rhel") {
    developers = {
        "subscription-manager", "repos",
        fmt::format("--enable=codeready-builder-for-rhel-{}-{}-rpms", major, choice.architecture)};
  } else if (release.id == "ol") {
    developers.back() = fmt::format("ol{}_codeready_builder", major);
    epel = fmt::format("oracle-epel-release-el{}", major);
  }
  std::vector<PackageStep> steps = {
      command(StepKind::Repository, "Enable the repository that DKMS needs", developers)};
  if (release.id != "rhel") {
    steps.push_back(command(StepKind::Repository, "Add EPEL, which has DKMS", dnf_install({epel})));
    return steps;
  }
  for (auto& step : add_epel_of_fedora(major)) steps.push_back(std::move(step));
  return steps;
}

// What can be refused comes first.
void move_keys_to_front(std::vector<PackageStep>& steps) {
  std::stable_partition(steps.begin(), steps.end(),
                        [](const PackageStep& step) { return !step.key_url.empty(); });
}

}  // namespace

Result<PackagePlan> plan_enterprise_linux(const OsRelease& release, const PackageChoice& choice) {
  const auto major = major_version(release);
  if (major < 8 || major > 10)
    return unsupported(release, "packages are known for versions 8, 9 and 10",
                       "install a .run file: `gantry driver install --source run`");
  const auto distribution = fmt::format("rhel{}", major);
  PackagePlan plan{.tool = PackageTool::Dnf, .distribution = distribution};
  plan.steps = {plugins()};
  for (auto& step : dkms_sources(release, choice)) plan.steps.push_back(std::move(step));
  for (auto& step : add_repository(choice, distribution)) plan.steps.push_back(std::move(step));
  move_keys_to_front(plan.steps);
  plan.steps.push_back(dnf_refresh());
  plan.steps.push_back(dnf_headers(choice));
  const bool streams = major < 10;  // version 10 has no streams [P]
  if (streams) {
    for (auto& step : select_stream(choice)) plan.steps.push_back(std::move(step));
    plan.steps.push_back(dnf_driver(choice, choice.version));
  } else {
    plan.steps.push_back(command(StepKind::Select,
                                 "Install dnf's command that stays with a version",
                                 dnf_install({"python3-dnf-plugin-versionlock"})));
    plan.steps.push_back(
        command(StepKind::Select, fmt::format("Stay with branch {}", choice.branch),
                {"dnf", "versionlock", "add", fmt::format("*nvidia*{}*", choice.branch)}));
    plan.steps.push_back(dnf_driver(choice, choice.version));
  }
  plan.packages = driver_packages(choice, "");
  plan.removal = dnf_removal(choice, distribution, streams);
  if (!streams)
    plan.removal.insert(
        plan.removal.begin(),
        command(StepKind::Remove, "Do not stay with the branch any more",
                {"dnf", "versionlock", "delete", fmt::format("*nvidia*{}*", choice.branch)}));
  if (major < 10) plan.notes.emplace_back(key_note());  // the key of rhel10 is not verified
  plan.notes.emplace_back(key_leftovers());
  plan.notes.emplace_back(
      "EPEL, the repository for developers and the kernel's headers stay when "
      "the driver is removed.");
  return plan;
}

Result<PackagePlan> plan_fedora(const OsRelease& release, const PackageChoice& choice) {
  const auto major = major_version(release);
  if (major < 39 || major > 60)
    return unsupported(release, "NVIDIA has repositories for releases of Fedora, not for this one",
                       "install a .run file: `gantry driver install --source run`");
  const auto distribution = fmt::format("fedora{}", major);
  PackagePlan plan{.tool = PackageTool::Dnf, .distribution = distribution};
  plan.steps = add_repository(choice, distribution);
  plan.steps.push_back(dnf_refresh());
  plan.steps.push_back(dnf_headers(choice));
  // Fedora has no streams of the driver; a pattern chooses the branch. Not verified.
  plan.steps.push_back(
      dnf_driver(choice, choice.version.empty() ? choice.branch + ".*" : choice.version));
  plan.packages = driver_packages(choice, "");
  plan.removal = dnf_removal(choice, distribution, false);
  plan.notes = {fmt::format("`dnf upgrade` moves to a later branch: `dnf versionlock add` of {} "
                            "prevents that.",
                            plan.packages.front()),
                "NVIDIA has repositories for the two newest releases of Fedora only.",
                key_leftovers()};
  return plan;
}

Result<PackagePlan> plan_amazon(const OsRelease& release, const PackageChoice& choice) {
  if (major_version(release) != 2023)
    return unsupported(release, "packages are known for Amazon Linux 2023",
                       "install a .run file: `gantry driver install --source run`");
  constexpr std::string_view kDistribution = "amzn2023";
  PackagePlan plan{.tool = PackageTool::Dnf, .distribution = std::string(kDistribution)};
  plan.steps = add_repository(choice, kDistribution);
  plan.steps.push_back(dnf_refresh());
  // The packages of kernels after 6.1 carry the kernel's version in their names. Not verified.
  const auto second = choice.kernel.find('.', choice.kernel.find('.') + 1);
  const auto series = choice.kernel.substr(0, second);
  const auto name = series == "6.1" ? std::string("kernel") : "kernel" + series;
  plan.steps.push_back(command(
      StepKind::Headers, "Install the headers of the running kernel",
      dnf_install({fmt::format("{}-devel-{}", name, choice.kernel), "gcc", "make", "dkms"})));
  for (auto& step : select_stream(choice)) plan.steps.push_back(std::move(step));  // [P]
  plan.steps.push_back(dnf_driver(choice, choice.version));
  plan.packages = driver_packages(choice, "");
  plan.removal = dnf_removal(choice, kDistribution, true);
  plan.notes = {key_note(), key_leftovers()};
  return plan;
}

// [P]. Packages that Microsoft signs, for Secure Boot, are in another repository:
// packages.microsoft.com/azurelinux/3.0/prod/nvidia.
Result<PackagePlan> plan_azure(const OsRelease& release, const PackageChoice& choice) {
  if (major_version(release) != 3)
    return unsupported(release, "packages are known for Azure Linux 3",
                       "install a .run file: `gantry driver install --source run`");
  if (!choice.open)
    return unsupported(release, "NVIDIA has packages with the open module only",
                       "ask for the open module, or install a .run file");
  const auto version = choice.version.empty() ? "" : "-" + choice.version;  // not verified
  PackagePlan plan{.tool = PackageTool::Tdnf, .distribution = "azl3", .packages = {"nvidia-open"}};
  plan.steps = add_repository(choice, "azl3");
  for (auto& step :
       {command(StepKind::Repository, "Add the repository that the driver's packages need",
                {"tdnf", "install", "-y", "azurelinux-repos-extended"}),
        command(StepKind::Refresh, "Forget what is known of the repositories",
                {"tdnf", "clean", "expire-cache"}),
        command(StepKind::Headers, "Install the headers of the running kernel",
                {"tdnf", "install", "-y", "kernel-devel-" + choice.kernel,
                 "kernel-headers-" + choice.kernel}),
        command(StepKind::Install, "Install the driver",
                {"tdnf", "install", "-y", "nvidia-open" + version})})
    plan.steps.push_back(step);
  plan.removal = {remove_packages({"tdnf", "remove", "-y"}, plan.packages),
                  remove_list("Remove the repository", list_file("azl3")),
                  remove_list("Remove the key", std::string(kRpmKey))};
  plan.notes = {key_leftovers()};
  if (choice.version.empty() && choice.branch_given)
    plan.notes.emplace_back(
        fmt::format("The repository chooses the version: name all of it to stay with branch {}.",
                    choice.branch));
  return plan;
}

}  // namespace gantry::driver_package
