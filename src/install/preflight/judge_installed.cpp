// SPDX-License-Identifier: Apache-2.0
// A driver that is there already and came another way.
#include "install/preflight/container_lock.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::preflight {
namespace {

std::string version_text(const InstalledDriver& driver) {
  return driver.version.empty() ? "a driver" : "driver " + driver.version;
}

std::string first_words(const std::vector<std::string>& packages) {
  std::vector<std::string> names;
  for (const auto& package : packages) names.push_back(package.substr(0, package.find(' ')));
  return fmt::format("{}", fmt::join(names, " "));
}

constexpr std::string_view kTwoDrivers =
    "Two installations overwrite each other's libraries, and an update of one breaks the other.";

// "…, which is the version that was asked for"
std::string same_version(const Judgement& j, const InstalledDriver& driver) {
  const bool same = !driver.version.empty() && driver.version == version_of(j.request);
  return same ? ", which is the version that was asked for" : "";
}

void judge_packages(Judgement& j, const InstalledDriver& driver) {
  const bool deb = driver.kind == InstalledKind::Deb;
  if (j.request.source == Source::Packages) {
    j.note("driver-installed",
           {.sentence = fmt::format("{} is installed by packages{}", version_text(driver),
                                    same_version(j, driver))});
    return;
  }
  const auto remove =
      deb ? fmt::format("sudo apt-get purge {} && sudo apt-get autoremove --purge",
                        first_words(driver.packages))
          : std::string("rpm -qa '*nvidia*'  # then remove these packages with dnf or zypper");
  j.block(deb ? "installed-by-deb" : "installed-by-rpm",
          {.sentence = fmt::format("{} is installed by the distribution's packages{}",
                                   version_text(driver), same_version(j, driver)),
           .cause = std::string(kTwoDrivers),
           .remedy = fmt::format("use --source packages, or first: {}", remove)});
}

void judge_run(Judgement& j, const InstalledDriver& driver) {
  j.block("installed-by-run",
          {.sentence = fmt::format("{} is installed by NVIDIA's archive, among the files of the "
                                   "distribution{}",
                                   version_text(driver), same_version(j, driver)),
           .cause = std::string(kTwoDrivers),
           .remedy = "sudo nvidia-uninstall --silent"});
}

void judge_container(Judgement& j, const InstalledDriver& driver) {
  if (j.request.source == Source::NvidiaContainer) {
    j.note("driver-installed",
           {.sentence = fmt::format("{} runs in a driver container", version_text(driver))});
    return;
  }
  const auto holder = driver.lock_holder.empty()
                          ? std::string()
                          : fmt::format(": {} holds {}", driver.lock_holder, kContainerLock);
  j.block("installed-by-container",
          {.sentence =
               fmt::format("a driver container is at work below {}{}", driver.directory, holder),
           .cause = "It loads its own driver again whenever it restarts.",
           .remedy = std::string(kEndDriverContainer)});
}

void judge_google(Judgement& j, const InstalledDriver& driver) {
  if (driver.directory == j.request.directory) {
    j.note("driver-installed",
           {.sentence = fmt::format("Google's installer put {} into {}; it will be taken over",
                                    version_text(driver), driver.directory)});
    return;
  }
  j.warn("installed-by-google",
         {.sentence = fmt::format("Google's installer put {} into {}", version_text(driver),
                                  driver.directory),
          .cause = "Its DaemonSet loads that driver again at every boot.",
          .remedy = fmt::format("delete the DaemonSet nvidia-driver-installer, or use --directory "
                                "{}",
                                driver.directory)});
}

void judge_one(Judgement& j, const InstalledDriver& driver) {
  switch (driver.kind) {
    case InstalledKind::None: return;
    case InstalledKind::Deb:
    case InstalledKind::Rpm: judge_packages(j, driver); return;
    case InstalledKind::Run: judge_run(j, driver); return;
    case InstalledKind::Container: judge_container(j, driver); return;
    case InstalledKind::Google: judge_google(j, driver); return;
    case InstalledKind::Gantry:
      j.note("driver-installed",
             {.sentence = fmt::format("Gantry installed {}", version_text(driver))});
      return;
    case InstalledKind::VgpuHost:
      j.block("vgpu-host-driver",
              {.sentence = "the driver of a vGPU host is installed",
               .cause = "Virtual machines have vGPUs of it; a machine can have this driver or the "
                        "one for containers, not both.",
               .remedy = "gantry vgpu list  # on a machine for containers remove the vGPU host "
                         "driver first: sudo nvidia-uninstall, or its package"});
      return;
    case InstalledKind::Unknown: break;
  }
  j.warn("installed-by-unknown",
         {.sentence = fmt::format("{} is installed in {}, and nothing tells by whom",
                                  version_text(driver), driver.directory),
          .cause = std::string(kTwoDrivers)});
}

}  // namespace

void judge_installed(Judgement& judgement) {
  const auto& facts = judgement.facts;
  for (const auto& driver : facts.installed) judge_one(judgement, driver);
  const bool host_driver = facts.is_loaded("nvidia_vgpu_vfio") &&
                           facts.find_installed(InstalledKind::VgpuHost) == nullptr;
  if (host_driver) judge_one(judgement, {.kind = InstalledKind::VgpuHost});
  if (judgement.request.source != Source::NvidiaContainer) return;
  for (const auto& driver : facts.installed) {
    if (driver.kind == InstalledKind::Container || driver.kind == InstalledKind::Google) continue;
    judgement.block("host-driver-beside-container",
                    {.sentence = fmt::format("{} is installed on the host", version_text(driver)),
                     .cause = "NVIDIA's driver container refuses to run beside it.",
                     .remedy = "remove the driver of the host, or do without the container"});
    return;
  }
}

}  // namespace gantry::preflight
