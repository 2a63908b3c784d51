// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/install.hpp"

#include "base/core/text.hpp"
#include "install/driver_setup/apply_internal.hpp"
#include "install/driver_setup/package_info.hpp"
#include "install/driver_setup/place_files.hpp"
#include "install/preflight/judge.hpp"

#include <fmt/format.h>

namespace gantry::driver_setup {
namespace {

using preflight::DriverRequest;
using preflight::MachineFacts;
using preflight::Source;

// What is known before the machine is judged.
struct InstallState {
  std::optional<InstallRecord> record;
  std::optional<InstallJournal> journal;
  PackageInfo package;
  std::string patch_digest;
};

bool has_same_url(const InstallRecord& record, const PackageInfo& package) {
  return !package.url.empty() && record.url == package.url && record.version == package.version;
}

Result<InstallState> look(const sys::Host& host, const DriverRequest& request) {
  InstallState now;
  GANTRY_CHECK(check_directory(request.directory));
  GANTRY_TRY(now.record, read_record(host));
  GANTRY_TRY(now.journal, read_install_journal(host));
  GANTRY_TRY(now.package, identify_package(host, request, now.record));
  GANTRY_TRY(now.patch_digest, patch_digest_of(host, request));
  // What is installed was checked when it was installed: it need not be downloaded to be known.
  if (now.record && now.package.digest.empty() && has_same_url(*now.record, now.package))
    now.package.digest = now.record->digest;
  return now;
}

bool is_wanted(const InstallState& now, const DriverRequest& request) {
  return now.record && is_same_driver(*now.record, request, now.package, now.patch_digest);
}

std::string running_kernel(const sys::Host& host) {
  const auto kernel = kernel_module::read_running_kernel(host);
  return kernel.ok() ? kernel->release : "";
}

bool is_complete(const sys::Host& host, const InstallRecord& record, const std::string& kernel) {
  if (!record.has_files()) return true;
  const Layout layout(record.directory);
  const auto modules = layout.modules(record.name, kernel);
  const auto files = find_damage(host, layout.version(record.name), layout.file_list(record.name));
  const auto built = find_damage(host, modules, modules + "/files.json");
  return files.ok() && files->empty() && built.ok() && built->empty();
}

// Whether the licence files of the request are in place.
bool has_licence(const sys::Host& host, const DriverRequest& request) {
  const auto same = [&](const std::string& from, const std::string& to) {
    const auto wanted = host.read(from);
    const auto placed = host.read(to);
    return from.empty() || (wanted.ok() && placed.ok() && *wanted == *placed);
  };
  return same(request.gridd_conf, "/etc/nvidia/gridd.conf") &&
         same(request.client_token,
              fmt::format("/etc/nvidia/ClientConfigToken/{}", base_name(request.client_token)));
}

bool is_for_other_kernel(const sys::Host& host, const DriverRequest& request) {
  return !request.kernel.empty() && request.kernel != running_kernel(host);
}

// The installation of an earlier call came as far as its record: the driver may be in use already.
bool lacks_last_steps(const InstallState& now) {
  return now.journal && is_recorded(*now.journal, now.record);
}

// The fast path: nothing of the machine but the driver's own files and the kernel is looked at.
bool needs_no_change(const sys::Host& host, const DriverRequest& request, const InstallState& now) {
  if (now.journal && !lacks_last_steps(now)) return false;
  if (!is_wanted(now, request) || !has_licence(host, request)) return false;
  const auto running = running_kernel(host);
  return is_complete(host, *now.record, request.kernel.empty() ? running : request.kernel);
}

Result<std::optional<driver_package::PackagePlan>> packages_for(const DriverRequest& request,
                                                                const MachineFacts& facts) {
  using model::ModuleFlavour;
  std::optional<driver_package::PackagePlan> plan;
  if (request.source != Source::Packages) return plan;
  driver_package::PackageRequest wish{.version = request.version,
                                      .kernel = facts.build_release,
                                      .architecture = facts.machine,
                                      .repository = request.mirror};
  if (request.flavour) {
    wish.flavour = *request.flavour == preflight::Flavour::Open ? ModuleFlavour::Open
                                                                : ModuleFlavour::Proprietary;
  }
  GANTRY_TRY(plan, driver_package::plan_packages(facts.os, wish));
  return plan;
}

Result<InstallPlan> plan_for(const DriverRequest& request, const SetupOptions& options,
                             const InstallState& now, const MachineFacts& facts,
                             const std::optional<driver_package::PackagePlan>& packages) {
  return make_plan({.facts = facts,
                    .request = request,
                    .package = now.package,
                    .patch_digest = now.patch_digest,
                    .installed = now.record,
                    .packages = packages,
                    .keep_at_boot = !options.program.empty(),
                    .resumes = now.journal && now.journal->command == "install"});
}

// A directory that another installer filled is not replaced; one of Google's installer is moved
// aside.
Status check_place(const sys::Host& host, const InstallRecord& target) {
  if (!target.has_files()) return {};
  const Layout layout(target.directory);
  GANTRY_CHECK(check_trusted_place(host, layout.versions()));
  for (const auto part : kShownDirectories) {
    const auto path = layout.shown(part);
    const auto info = host.link_info(path);
    if (!info.ok() || info->kind == sys::FileKind::Symlink) continue;
    if (info->kind == sys::FileKind::Directory && is_googles(host, layout)) continue;
    return Error(Errc::Exists,
                 fmt::format("{} exists, and Gantry did not make it", host.outside(path)))
        .advise("take the other driver off first, or use another directory with --directory DIR");
  }
  return {};
}

// Work on another target, or a removal, ended before its last step. Takes an installation back; the
// rest of a removal is overtaken by what comes now.
Status settle_other_work(const sys::Host& host, InstallState& now, const InstallRecord& target,
                         const SetupOptions& options, InstallEffects& effects) {
  if (!now.journal) return {};
  if (now.journal->command == "install" && !is_recorded(*now.journal, now.record)) {
    const auto& begun = now.journal->target;
    if (begun.name == target.name && begun.source == target.source &&
        begun.directory == target.directory)
      return {};
    if (options.progress)
      options.progress(fmt::format("take back the unfinished installation of {}",
                                   describe(now.journal->target)));
    SetupWork work(host, options, *now.journal, effects);
    const auto act = [&] { return go_back(work); };
    GANTRY_CHECK(options.exclusively ? options.exclusively(act) : act());
  }
  now.journal.reset();
  GANTRY_TRY(now.record, read_record(host));
  return {};
}

InstallJournal journal_for(const InstallState& now, InstallPlan plan) {
  InstallJournal journal{.command = "install",
                         .target = std::move(plan.target),
                         .before = now.record,
                         .steps = std::move(plan.steps),
                         .kernel = std::move(plan.kernel)};
  if (!now.journal) return journal;
  // The same work again: what it had noted stays true.
  const auto& old = *now.journal;
  journal.before = old.before;
  journal.target.created = old.target.created;
  journal.target.moved_aside = old.target.moved_aside;
  journal.target.added_to_loader_config = old.target.added_to_loader_config;
  journal.target.set_firmware_path = old.target.set_firmware_path;
  journal.target.firmware_path_before = old.target.firmware_path_before;
  journal.target.made_cdi = old.target.made_cdi;
  journal.target.previous = old.target.previous;
  journal.target.kernel_modules = old.target.kernel_modules;
  journal.placed_version = old.placed_version;
  // After a reboot into another kernel, its modules may have been there before.
  journal.placed_modules = old.placed_modules && old.kernel == journal.kernel;
  journal.unloaded = old.unloaded;
  journal.unloaded_modules = old.unloaded_modules;
  journal.noted_packages = old.noted_packages;
  if (old.noted_packages) journal.target.removal = old.target.removal;
  journal.services = old.services;
  journal.licence_files = old.licence_files;
  return journal;
}

Result<SetupReport> carry_out(const sys::Host& host, const DriverRequest& request,
                              const SetupOptions& options, const InstallState& now,
                              const MachineFacts& facts, InstallPlan plan,
                              const std::optional<driver_package::PackagePlan>& packages,
                              InstallEffects& effects) {
  SetupReport report;
  report.notes = plan.notes;
  auto journal = journal_for(now, std::move(plan));
  SetupWork work(host, options, journal, effects);
  work.request = request;
  work.facts = &facts;
  work.packages = packages ? &*packages : nullptr;
  GANTRY_CHECK(go_forward(work, report.done));
  report.record = journal.target;
  report.changed = true;
  report.notes.insert(report.notes.end(), work.notes.begin(), work.notes.end());
  report.verified = std::move(work.verified);
  return report;
}

// The archive is needed only if the version is not on the machine already.
bool needs_archive(const sys::Host& host, const DriverRequest& request, const InstallPlan& plan) {
  if (!plan.target.has_files() || !request.run_file.empty()) return false;
  const Layout layout(plan.target.directory);
  const auto damage =
      find_damage(host, layout.version(plan.target.name), layout.file_list(plan.target.name));
  return !damage.ok() || !damage->empty();
}

Result<PackageInfo> fetch(const sys::Host& host, const DriverRequest& request,
                          const PackageInfo& package, const SetupOptions& options,
                          InstallEffects& effects) {
  if (options.enter && request.run_file.empty()) options.enter(SetupPhase::Download);
  return fetch_package(host, request, package, effects);
}

Result<SetupReport> keep_installed(const sys::Host& host, const DriverRequest& request,
                                   const SetupOptions& options, InstallState& now,
                                   InstallEffects& effects) {
  SetupReport report{.record = *now.record};
  if (!is_for_other_kernel(host, request)) {
    GANTRY_TRY(report, load_record(host, *now.record, options, effects));
  }
  if (!now.journal) return report;
  SetupWork work(host, options, *now.journal, effects);
  finish_recorded(work, report.done);
  report.changed = true;
  report.notes.insert(report.notes.end(), work.notes.begin(), work.notes.end());
  return report;
}

Result<SetupReport> install_locked(const sys::Host& host, const DriverRequest& request,
                                   const SetupOptions& options, InstallEffects& effects) {
  GANTRY_TRY(auto now, look(host, request));
  if (needs_no_change(host, request, now))
    return keep_installed(host, request, options, now, effects);
  GANTRY_TRY(const auto facts, options.read_facts());
  GANTRY_CHECK(preflight::first_blocker(preflight::judge(facts, request)));
  if (request.source == Source::NvidiaContainer) {
    GANTRY_TRY(now.package.version, await_container(host, effects, options.progress));
  }
  GANTRY_TRY(const auto packages, packages_for(request, facts));
  const bool unknown = now.package.digest.empty() && !now.package.url.empty();
  if (unknown) {
    GANTRY_TRY(now.package, fetch(host, request, now.package, options, effects));
  }
  GANTRY_TRY(auto plan, plan_for(request, options, now, facts, packages));
  GANTRY_CHECK(check_place(host, plan.target));
  GANTRY_CHECK(settle_other_work(host, now, plan.target, options, effects));
  if (!unknown && needs_archive(host, request, plan)) {
    GANTRY_TRY(now.package, fetch(host, request, now.package, options, effects));
  }
  GANTRY_TRY(plan, plan_for(request, options, now, facts, packages));  // after what was settled
  return carry_out(host, request, options, now, facts, std::move(plan), packages, effects);
}

}  // namespace

Result<SetupPreview> preview_install(const sys::Host& host, const DriverRequest& request,
                                     const SetupOptions& options) {
  GANTRY_TRY(const auto now, look(host, request));
  SetupPreview preview;
  GANTRY_TRY(const auto facts, options.read_facts());
  preview.findings = preflight::judge(facts, request);
  GANTRY_TRY(const auto packages, packages_for(request, facts));
  GANTRY_TRY(preview.plan, plan_for(request, options, now, facts, packages));
  preview.up_to_date = !now.journal && needs_no_change(host, request, now) &&
                       verify(host, *now.record, VerifyDepth::Loaded, nullptr).good();
  return preview;
}

Result<SetupReport> install(const sys::Host& host, const DriverRequest& request,
                            const SetupOptions& options, InstallEffects& effects) {
  GANTRY_TRY(const auto lock, lock_driver_setup(host));
  auto report = install_locked(host, request, options, effects);
  // A machine on which nothing was installed has no files of ours.
  if (!report.ok()) static_cast<void>(remove_empty_state(host, effects).ok());
  return report;
}

}  // namespace gantry::driver_setup
