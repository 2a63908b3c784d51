// SPDX-License-Identifier: Apache-2.0
// Drivers that others place: the distribution's packages, NVIDIA's driver container.
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_package/distribution.hpp"
#include "install/driver_setup/package_info.hpp"
#include "install/driver_setup/setup_work_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kPackageDeadline{3600};
constexpr std::chrono::seconds kContainerDeadline{1800};
constexpr std::chrono::milliseconds kContainerPoll{1000};
constexpr std::string_view kContainerSmi = "/run/nvidia/driver/usr/bin/nvidia-smi";

ProgramCall package_command(const std::vector<std::string>& argv) {
  ProgramCall call{.deadline = kPackageDeadline};
  for (const auto& word : argv) call.words.push_back({.text = word});
  return call;
}

// Mistakes that have a known cause get the sentence that says it.
Error explain_failure(const SetupWork& work, const driver_package::PackageStep& step,
                      const Error& error) {
  const auto command = fmt::format("{}", fmt::join(step.argv, " "));
  const auto text = fmt::format("{}\n{}", command, error.text());
  if (const auto fault = driver_package::recognise_clock_fault(error.text(), unix_now()))
    return Error(Errc::Denied, fmt::format("{}: {}", step.what, fault->sentence))
        .advise(fault->remedy);
  if (work.facts != nullptr) {
    if (auto wrong = driver_package::recognise_wrong_suse_url(text, work.facts->os)) return *wrong;
  }
  return Error(error).in(step.what);
}

Status run_package_step(SetupWork& work, const driver_package::PackageStep& step) {
  work.progress(step.what);
  if (!step.file.empty()) return create_file(work, step.file, step.content, 0644);
  const auto done = work.effects.run(package_command(step.argv));
  return done.ok() ? Status() : explain_failure(work, step, done.error());
}

}  // namespace

Status run_packages(SetupWork& work) {
  if (work.packages == nullptr) return Error(Errc::Internal, "there is no plan for packages");
  for (const auto& step : work.packages->steps) GANTRY_CHECK(run_package_step(work, step));
  return {};
}

Status undo_packages(SetupWork& work) {
  if (work.before() != nullptr)
    return {};  // the old version is replaced by the package tool itself
  for (const auto& step : work.target().removal) {
    if (step.argv.empty()) {
      GANTRY_CHECK(step.content.empty() ? work.effects.remove(step.file)
                                        : work.effects.save(step.file, step.content, 0644));
      continue;
    }
    GANTRY_CHECK(work.effects.run(package_command(step.argv)));
  }
  return {};
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
