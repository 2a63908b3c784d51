// SPDX-License-Identifier: Apache-2.0
// Loads what is installed, and builds its modules for other kernels.
#include "base/core/text.hpp"
#include "install/driver_setup/apply_internal.hpp"
#include "install/driver_setup/container_lock.hpp"
#include "install/driver_setup/install.hpp"

#include <fmt/format.h>

#include <memory>

namespace gantry::driver_setup {
namespace {

Result<InstallRecord> installed_record(const sys::Host& host) {
  GANTRY_TRY(auto record, read_record(host));
  if (record) return *std::move(record);
  return Error(Errc::NotFound, "Gantry has installed no driver on this machine")
      .advise("sudo gantry driver install --version VERSION");
}

Result<InstallRecord> record_with_source(const sys::Host& host) {
  GANTRY_TRY(auto record, installed_record(host));
  if (record.has_files()) return record;
  return Error(Errc::Unsupported, fmt::format("the driver {} was installed from {}, which builds "
                                              "its modules itself",
                                              describe(record), to_string(record.source)));
}

// Work that a load and a build do: nothing of it needs a way back.
InstallJournal quiet_journal(const InstallRecord& record, std::string kernel) {
  return {.command = "install",
          .target = record,
          .before = record,
          .steps = {},
          .kernel = std::move(kernel)};
}

// The compilers that are there. Without facts the usual one is taken.
std::optional<preflight::MachineFacts> facts_if_readable(const SetupOptions& options) {
  if (!options.read_facts) return std::nullopt;
  auto facts = options.read_facts();
  if (!facts.ok()) return std::nullopt;
  return *std::move(facts);
}

// Whether containers would get this driver.
bool has_specification(const sys::Host& host, const InstallRecord& record) {
  const auto text = host.read(kSpecificationPath);
  return text.ok() && contains(*text, record.version);
}

Status run_load(SetupWork& work, bool is_loaded, std::vector<std::string>& done) {
  using enum StepKind;
  std::vector<InstallStep> steps;
  if (!is_loaded) {
    if (work.target().has_files()) steps = {{.kind = SwitchVersion}, {.kind = SetFirmwarePath}};
    steps.insert(steps.end(),
                 {{.kind = LoadModules}, {.kind = MakeNodes}, {.kind = StartServices}});
  }
  steps.insert(steps.end(), {{.kind = RefreshCdi}, {.kind = TellAgent}});
  for (const auto& step : steps) {
    const auto text = describe(step, work.target());
    if (const auto stopped = work.options.check_stop(); !stopped.ok())
      return Error(stopped.error()).advise("go on with: sudo gantry driver load");
    work.progress(text);
    GANTRY_CHECK(execute(work, step).in(text));
    done.push_back(text);
  }
  return {};
}

}  // namespace

Result<SetupReport> load_record(const sys::Host& host, const InstallRecord& record,
                                const SetupOptions& options, InstallEffects& effects) {
  SetupReport report{.record = record};
  const bool is_loaded = verify(host, record, VerifyDepth::Loaded, nullptr).good();
  // What the end of an installation could not remove.
  if (host.exists(kStaging) && !host.exists(kJournalPath))
    GANTRY_CHECK(effects.remove_tree(std::string(kStaging)));
  if (is_loaded && has_specification(host, record)) return report;
  std::unique_ptr<ContainerLock> container;
  if (!is_loaded && record.source != preflight::Source::NvidiaContainer) {
    GANTRY_TRY(container, ContainerLock::take(host));
  }
  auto journal = quiet_journal(record, "");
  SetupWork work(host, options, journal, effects);
  work.keeps_journal = false;
  GANTRY_CHECK(run_load(work, is_loaded, report.done));
  report.changed = true;
  report.notes = std::move(work.notes);
  report.verified = verify(host, record, VerifyDepth::Loaded, nullptr);
  GANTRY_CHECK(first_failure(report.verified));
  return report;
}

Result<SetupReport> load(const sys::Host& host, const SetupOptions& options,
                         InstallEffects& effects) {
  GANTRY_CHECK(installed_record(host));  // the lock is a file, too
  GANTRY_TRY(const auto lock, lock_driver_setup(host));
  GANTRY_TRY(const auto record, installed_record(host));
  return load_record(host, record, options, effects);
}

Result<SetupReport> build(const sys::Host& host, const std::string& kernel,
                          const SetupOptions& options, InstallEffects& effects) {
  GANTRY_CHECK(record_with_source(host));
  GANTRY_TRY(const auto lock, lock_driver_setup(host));
  GANTRY_TRY(const auto record, record_with_source(host));
  SetupReport report{.record = record};
  auto journal = quiet_journal(record, kernel);
  SetupWork work(host, options, journal, effects);
  work.keeps_journal = false;
  const auto facts = facts_if_readable(options);
  if (facts) work.facts = &*facts;
  const InstallStep step{.kind = StepKind::BuildModules, .subject = kernel};
  const auto text = describe(step, record);
  work.progress(text);
  auto built = build_for(work, kernel);
  if (!built.ok()) {
    static_cast<void>(undo_modules(work, kernel).ok());  // the first error is told
    static_cast<void>(effects.remove_directory(std::string(kStaging)).ok());
    if (const auto stopped = options.check_stop(); !stopped.ok())
      return Error(Errc::Timeout, fmt::format("{}; nothing was built", stopped.error().text()))
          .advise(fmt::format("go on with: sudo gantry driver build --kernel {}", kernel));
    return std::move(built).error().in(text);
  }
  GANTRY_CHECK(effects.remove_directory(std::string(kStaging)));
  report.changed = work.journal.placed_modules;
  if (report.changed) report.done.push_back(text);
  return report;
}

Status forget_kernel(const sys::Host& host, const std::string& kernel, InstallEffects& effects) {
  GANTRY_CHECK(record_with_source(host));
  GANTRY_TRY(const auto lock, lock_driver_setup(host));
  GANTRY_TRY(const auto record, record_with_source(host));
  const auto running = kernel_module::read_running_kernel(host);
  if (running.ok() && running->release == kernel)
    return Error(Errc::Busy, fmt::format("the kernel {} runs", kernel));
  if (kernel.empty() || kernel.find('/') != std::string::npos || kernel.starts_with('.'))
    return Error(Errc::Invalid, fmt::format("`{}` is not the release of a kernel", kernel));
  return effects.remove_tree(Layout(record.directory).modules(record.name, kernel));
}

}  // namespace gantry::driver_setup
