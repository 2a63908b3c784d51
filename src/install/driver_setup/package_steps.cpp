// SPDX-License-Identifier: Apache-2.0
// Drivers that others place: the distribution's packages, NVIDIA's driver container.
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_package/distribution.hpp"
#include "install/driver_setup/package_database_internal.hpp"
#include "install/driver_setup/package_info.hpp"
#include "install/driver_setup/repository_keys_internal.hpp"
#include "install/driver_setup/setup_work_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kContainerDeadline{1800};
constexpr std::chrono::milliseconds kContainerPoll{1000};
constexpr std::string_view kContainerSmi = "/run/nvidia/driver/usr/bin/nvidia-smi";

using RemovalSteps = std::vector<RemovalStep>;

bool uses_apt(const RemovalSteps& removal) {
  return std::any_of(removal.begin(), removal.end(),
                     [](const RemovalStep& step) { return is_apt(step.argv); });
}

// ---- installation

// Mistakes that have a known cause get the sentence that says it.
Error explain_failure(const SetupWork& work, const driver_package::PackageStep& step,
                      const Error& error) {
  if (const auto fault = driver_package::recognise_clock_fault(error.text(), unix_now()))
    return Error(Errc::Denied, fmt::format("{}: {}", step.what, fault->sentence))
        .advise(fault->remedy);
  if (!step.key_url.empty()) return Error(error).in(step.what);  // it has addresses of its own
  if (auto wrong = driver_package::recognise_wrong_suse_url(error.text(), work.facts->os))
    return *wrong;
  if (auto unsigned_one = driver_package::recognise_signature_fault(error.text()))
    return std::move(*unsigned_one).in(step.what);
  return Error(error).in(step.what);
}

std::string_view base_url(std::string_view list) {
  constexpr std::string_view kKey = "baseurl=";
  for (auto line : lines(list)) {
    line = trim(line);
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    while (line.ends_with('/')) line.remove_suffix(1);
    return line;
  }
  return {};
}

// What an earlier installation of ours made.
struct OwnPackages {
  std::set<std::string> names;
  std::set<std::string> lists;
};

OwnPackages packages_of(const InstallRecord* before) {
  OwnPackages own;
  for (const auto& step : before == nullptr ? RemovalSteps{} : before->removal) {
    own.names.insert(step.packages.begin(), step.packages.end());
    if (!step.list.empty()) own.lists.insert(step.list);
  }
  return own;
}

// zypper refuses a second repository of the same name: one that a person added, or a run of ours
// that was killed.
Result<bool> has_repository(const SetupWork& work, const driver_package::PackageStep& step) {
  if (step.list.empty() || !work.host.exists(step.list)) return false;
  GANTRY_TRY(const auto list, work.host.read(step.list));
  const auto url = base_url(list);
  if (std::find(step.argv.begin(), step.argv.end(), url) != step.argv.end()) return true;
  if (auto wrong = driver_package::recognise_wrong_suse_url(url, work.facts->os)) return *wrong;
  return Error(Errc::Exists, fmt::format("{} has another repository of the same name: {}",
                                         work.host.outside(step.list), url))
      .advise(fmt::format("sudo zypper removerepo {}", step.argv.back()));
}

Status run_package_step(SetupWork& work, const driver_package::PackageStep& step) {
  work.progress(step.what);
  if (!step.key_url.empty()) {
    const auto placed = place_repository_key(work, step);
    return placed.ok() ? Status() : explain_failure(work, step, placed.error());
  }
  if (step.kind == driver_package::PackageStepKind::Key) return import_rpm_keys(work, step);
  if (!step.file.empty()) return write_package_file(work, step.file, step.content);
  GANTRY_TRY(const bool there, has_repository(work, step));
  if (there) return {};
  const auto done = work.effects.run(package_command(step.argv));
  return done.ok() ? Status() : explain_failure(work, step, done.error());
}

// The rest of an older version's removal.
void add_older_removal(RemovalSteps& removal, const InstallRecord* before) {
  for (auto step : before == nullptr ? RemovalSteps{} : before->removal) {
    const bool had_packages = !step.packages.empty();
    for (const auto& other : removal)
      std::erase_if(step.packages, [&](const std::string& name) {
        return std::find(other.packages.begin(), other.packages.end(), name) !=
               other.packages.end();
      });
    const bool same = std::any_of(removal.begin(), removal.end(), [&](const RemovalStep& other) {
      return !had_packages && other.argv == step.argv && other.file == step.file &&
             other.key == step.key;
    });
    if (same || (had_packages && step.packages.empty())) continue;
    removal.push_back(std::move(step));
  }
}

// Once, before the first change: what is there already stays when the driver is removed.
Status note_what_was_there(SetupWork& work) {
  if (work.journal.noted_packages) return {};
  auto& removal = work.journal.target.removal;
  GANTRY_TRY(const auto installed, read_packages(work.effects, uses_apt(removal)));
  const auto own = packages_of(work.before());
  std::vector<std::string> staying;
  std::erase_if(removal, [&](RemovalStep& step) {
    const bool had_packages = !step.packages.empty();
    std::erase_if(step.packages, [&](const std::string& name) {
      const bool stays = installed.contains(name) && !own.names.contains(name);
      if (stays) staying.push_back(name);
      return stays;
    });
    const bool foreign_list =
        !step.list.empty() && work.host.exists(step.list) && !own.lists.contains(step.list);
    return foreign_list || (had_packages && step.packages.empty());
  });
  add_older_removal(removal, work.before());
  if (!staying.empty())
    work.note(fmt::format("installed before, so that `gantry driver remove` leaves it: {}",
                          fmt::join(staying, ", ")));
  work.journal.noted_packages = true;
  return save_journal(work);
}

// The record says what there is, also if it is not loaded.
Status note_installed(SetupWork& work) {
  auto& target = work.journal.target;
  GANTRY_TRY(const auto installed,
             read_packages(work.effects, work.packages->tool == driver_package::PackageTool::Apt));
  target.packages.clear();
  std::string version;
  for (const auto& name : work.packages->packages) {
    const auto found = installed.find(name);
    if (found == installed.end()) continue;
    target.packages.push_back(fmt::format("{} {}", name, found->second));
    if (version.empty()) version = driver_package::driver_version_of(found->second);
  }
  if (!version.empty()) target.version = version;
  return {};
}

// ---- removal

Status remove_packages(SetupWork& work, const RemovalStep& step, const PackageVersions& installed) {
  auto names = step.packages;
  std::erase_if(names, [&](const std::string& name) { return !installed.contains(name); });
  if (names.empty()) return {};
  auto argv = step.argv;
  argv.insert(argv.end(), names.begin(), names.end());
  if (is_apt(argv)) {
    GANTRY_TRY(const auto others, came_with(work.effects, names));
    argv.insert(argv.end(), others.begin(), others.end());
  }
  GANTRY_CHECK(work.effects.run(package_command(argv)));
  return {};
}

Status take_back(SetupWork& work, const RemovalStep& step, const PackageVersions& installed) {
  if (!step.list.empty() && !work.host.exists(step.list)) return {};
  if (!step.packages.empty()) return remove_packages(work, step, installed);
  if (!step.key.empty()) return remove_rpm_key(work, step.key);
  if (!step.argv.empty()) {
    GANTRY_CHECK(work.effects.run(package_command(step.argv)));
    return {};
  }
  return step.content.empty() ? work.effects.remove(step.file)
                              : work.effects.save(step.file, step.content, 0644);
}

// Of an upgrade that failed.
Status remove_new_keys(SetupWork& work) {
  const auto& known = work.before()->removal;
  for (const auto& step : work.target().removal) {
    if (step.key.empty() || std::find(known.begin(), known.end(), step) != known.end()) continue;
    GANTRY_CHECK(remove_rpm_key(work, step.key));
  }
  return {};
}

}  // namespace

bool is_own_package_file(const SetupWork& work, const std::string& path) {
  const auto& created = work.target().created;
  return std::find(created.begin(), created.end(), path) != created.end() ||
         packages_of(work.before()).lists.contains(path);
}

// Before Gantry wrote lists and keys itself, the package tools did: those are not noted as created.
Status write_package_file(SetupWork& work, const std::string& path, std::string_view content) {
  if (packages_of(work.before()).lists.contains(path))
    return work.effects.save(path, content, 0644);
  auto made = create_file(work, path, content, 0644);
  if (made.ok() || made.error().code() != Errc::Exists) return made;
  return Error(made.error())
      .advise(fmt::format("if nothing else needs it: sudo rm {}", work.host.outside(path)));
}

Status run_packages(SetupWork& work) {
  if (work.packages == nullptr || work.facts == nullptr)
    return Error(Errc::Internal, "there is no plan for packages");
  GANTRY_CHECK(note_what_was_there(work));
  for (const auto& step : work.packages->steps) GANTRY_CHECK(run_package_step(work, step));
  return note_installed(work);
}

// The first failure is told after all steps have been tried.
Status undo_packages(SetupWork& work) {
  // The old version is replaced by the package tool itself.
  if (work.before() != nullptr) return remove_new_keys(work);
  const bool nothing_done = work.journal.command == "install" && !work.journal.noted_packages;
  if (nothing_done || work.target().removal.empty()) return {};
  GANTRY_TRY(const auto installed, read_packages(work.effects, uses_apt(work.target().removal)));
  Status first;
  for (const auto& step : work.target().removal) {
    auto done = take_back(work, step, installed);
    if (!done.ok() && first.ok()) first = std::move(done);
  }
  return first;
}

Result<std::string> await_container(const sys::Host& host, InstallEffects& effects,
                                    const std::function<void(std::string_view)>& progress) {
  auto left = std::chrono::milliseconds(kContainerDeadline);
  if (progress) progress("wait for NVIDIA's driver container (/run/nvidia/driver)");
  for (;;) {
    auto loaded = procfs::read_version(host);
    if (loaded.ok() && !loaded->version.empty() && host.exists(kContainerSmi))
      return std::move(loaded->version);
    if (left <= std::chrono::milliseconds(0)) {
      return Error(Errc::Timeout, fmt::format("NVIDIA's driver container did not load a driver "
                                              "within {} minutes",
                                              kContainerDeadline.count() / 60))
          .advise("see its log: kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset");
    }
    effects.pause(kContainerPoll);
    left -= kContainerPoll;
  }
}

}  // namespace gantry::driver_setup
