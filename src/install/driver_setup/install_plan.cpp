// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/install_plan.hpp"

#include "install/driver_package/checksum.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/preflight/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::driver_setup {
namespace {

using preflight::Flavour;
using preflight::Source;

constexpr std::array kStepNames{std::pair{StepKind::Unpack, "unpack"},
                                std::pair{StepKind::PlaceFiles, "place-files"},
                                std::pair{StepKind::BuildModules, "build-modules"},
                                std::pair{StepKind::CopyModules, "copy-modules"},
                                std::pair{StepKind::RunPackages, "run-packages"},
                                std::pair{StepKind::CheckIdle, "check-idle"},
                                std::pair{StepKind::StopServices, "stop-services"},
                                std::pair{StepKind::UnloadModules, "unload-modules"},
                                std::pair{StepKind::SwitchVersion, "switch-version"},
                                std::pair{StepKind::SetFirmwarePath, "set-firmware-path"},
                                std::pair{StepKind::LoadModules, "load-modules"},
                                std::pair{StepKind::MakeNodes, "make-nodes"},
                                std::pair{StepKind::PlaceLicence, "place-licence"},
                                std::pair{StepKind::StartServices, "start-services"},
                                std::pair{StepKind::UpdateLoaderCache, "update-loader-cache"},
                                std::pair{StepKind::WriteGoogleCache, "write-google-cache"},
                                std::pair{StepKind::Verify, "verify"},
                                std::pair{StepKind::KeepAtBoot, "keep-at-boot"},
                                std::pair{StepKind::Record, "record"},
                                std::pair{StepKind::RefreshCdi, "refresh-cdi"},
                                std::pair{StepKind::TellAgent, "tell-agent"},
                                std::pair{StepKind::CleanUp, "clean-up"}};

// The same archive with another patch gives other modules.
std::string identity_of(const std::string& digest, std::string_view patch_digest) {
  if (patch_digest.empty()) return digest;
  driver_package::Sha256 sum;
  sum.add(digest);
  sum.add(patch_digest);
  return sum.finish();
}

bool has_own_files(Source source) {
  return source == Source::Run || source == Source::Precompiled || source == Source::Grid;
}

Result<InstallRecord> target_of(const PlanInput& input) {
  const auto& request = input.request;
  InstallRecord target;
  if (input.installed) target = *input.installed;  // what was created stays known
  target.source = request.source;
  target.version = input.package.version;
  target.digest = input.package.digest;
  target.patch_digest = input.patch_digest;
  target.url = input.package.url;
  target.archive = input.package.archive;
  target.directory = request.directory;
  target.name.clear();
  target.repository_keys = request.repository_keys;
  target.flavour = request.flavour;
  if (!has_own_files(request.source)) return target;
  const auto parsed = preflight::DriverVersion::parse(target.version);
  if (!parsed)
    return Error(Errc::Invalid, fmt::format("`{}` is not a version of the driver", target.version));
  const auto architectures = input.facts.architectures();
  GANTRY_TRY(target.flavour,
             preflight::choose_flavour(architectures, parsed->branch,
                                       preflight::wanted_flavour(input.facts, request)));
  target.name =
      version_name(target.version, identity_of(target.digest, input.patch_digest), *target.flavour);
  if (input.installed && input.installed->name != target.name)
    target.previous = input.installed->name;
  return target;
}

// It would have to be moved, together with everything that names it.
Status check_same_directory(const PlanInput& input) {
  const auto& installed = input.installed;
  if (!installed || !installed->has_files() || installed->directory == input.request.directory)
    return {};
  return Error(Errc::Exists,
               fmt::format("the driver {} is installed in {}, not in {}", describe(*installed),
                           installed->directory, input.request.directory))
      .advise(fmt::format("use --directory {}, or take it off first: sudo gantry driver remove",
                          installed->directory));
}

// The loader would find the libraries of the one and the kernel the modules of the other.
Status check_same_kind(const PlanInput& input) {
  const auto& installed = input.installed;
  if (!installed || installed->has_files() == has_own_files(input.request.source)) return {};
  return Error(Errc::Exists, fmt::format("the driver {} is installed from {}, and one from {} "
                                         "cannot stand beside it",
                                         describe(*installed), to_string(installed->source),
                                         to_string(input.request.source)))
      .advise("take it off first: sudo gantry driver remove");
}

// `current` and the loader's cache belong to the kernel that runs, too.
Status check_loaded_stays(const PlanInput& input, const InstallPlan& plan) {
  const auto& loaded = input.facts.loaded.version;
  const bool loads = plan.kernel == input.facts.kernel.release;
  if (loads || loaded.empty() || loaded == plan.target.version ||
      !has_own_files(input.request.source))
    return {};
  return Error(
             Errc::Busy,
             fmt::format("the kernel {} runs with the driver {}: programs would get the libraries "
                         "of {} and fail until the reboot into {}",
                         input.facts.kernel.release, loaded, plan.target.version, plan.kernel))
      .advise(fmt::format("install it for the running kernel, then: sudo gantry driver build "
                          "--kernel {}",
                          plan.kernel));
}

void add(std::vector<InstallStep>& steps, std::initializer_list<StepKind> kinds) {
  for (const auto kind : kinds) steps.push_back({.kind = kind});
}

void add_own_files(const PlanInput& input, const InstallPlan& plan,
                   std::vector<InstallStep>& steps) {
  using enum StepKind;
  add(steps, {Unpack, PlaceFiles});
  steps.push_back({.kind = input.request.builds_modules() ? BuildModules : CopyModules,
                   .subject = plan.kernel});
}

// An upgrade by another name keeps the file of the first installation true.
bool has_google_cache(const PlanInput& input) {
  if (input.request.as_google) return true;
  if (!input.installed) return false;
  const auto& created = input.installed->created;
  const auto path = Layout(input.installed->directory).google_cache();
  return std::find(created.begin(), created.end(), path) != created.end();
}

std::vector<InstallStep> steps_for(const PlanInput& input, const InstallPlan& plan) {
  using enum StepKind;
  const auto source = input.request.source;
  const bool own = has_own_files(source);
  const bool loads = plan.kernel == input.facts.kernel.release;
  const bool unloads =
      source != Source::NvidiaContainer && loads &&
      (input.resumes || !input.facts.loaded.version.empty() || input.facts.is_loaded("nvidia"));
  std::vector<InstallStep> steps;
  if (own) add_own_files(input, plan, steps);
  if (unloads) add(steps, {CheckIdle});
  if (source == Source::Packages) add(steps, {RunPackages});
  if (unloads) add(steps, {StopServices, UnloadModules});
  if (own) steps.push_back({.kind = SwitchVersion, .subject = plan.target.name});
  if (loads && own) add(steps, {SetFirmwarePath});
  if (loads && source != Source::NvidiaContainer) add(steps, {LoadModules});
  if (loads) add(steps, {MakeNodes});
  if (!input.request.gridd_conf.empty() || !input.request.client_token.empty())
    add(steps, {PlaceLicence});
  if (loads && source != Source::NvidiaContainer) add(steps, {StartServices});
  if (own) add(steps, {UpdateLoaderCache});
  if (own && loads && has_google_cache(input)) add(steps, {WriteGoogleCache});
  if (loads) add(steps, {Verify});
  if (own && input.keep_at_boot) add(steps, {KeepAtBoot});
  add(steps, {Record});
  if (loads) add(steps, {RefreshCdi, TellAgent});
  add(steps, {CleanUp});
  return steps;
}

std::vector<RemovalStep> removal_of(const driver_package::PackagePlan& packages) {
  std::vector<RemovalStep> removal;
  for (const auto& step : packages.removal)
    removal.push_back({.argv = step.argv,
                       .file = step.file,
                       .content = step.content,
                       .packages = step.packages,
                       .list = step.list});
  return removal;
}

// "580" and "580.159.04" are both wishes that 580.159.04 fulfils.
bool is_of_branch(std::string_view version, std::string_view wish) {
  return wish.empty() || version == wish ||
         (version.starts_with(wish) && version.substr(wish.size()).starts_with('.'));
}

bool same_archive(const InstallRecord& record, const PackageInfo& package) {
  if (!package.digest.empty()) return record.digest == package.digest;
  return !package.url.empty() && record.url == package.url && record.version == package.version;
}

}  // namespace

std::string_view to_string(StepKind kind) {
  for (const auto& [other, name] : kStepNames) {
    if (other == kind) return name;
  }
  return "";
}

std::optional<StepKind> parse_step_kind(std::string_view text) {
  for (const auto& [kind, name] : kStepNames) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

std::string describe(const InstallStep& step, const InstallRecord& target) {
  const auto driver = describe(target);
  switch (step.kind) {
    case StepKind::Unpack: return fmt::format("unpack the archive of {}", driver);
    case StepKind::PlaceFiles:
      return fmt::format("place the files of {} below {}", driver, target.directory);
    case StepKind::BuildModules:
      return fmt::format("build the modules of {} for {}", driver, step.subject);
    case StepKind::CopyModules:
      return fmt::format("place the built modules of {} for {}", driver, step.subject);
    case StepKind::RunPackages: return fmt::format("install the packages of {}", driver);
    case StepKind::CheckIdle: return "check that no process uses the loaded driver";
    case StepKind::StopServices: return "stop the driver's services";
    case StepKind::UnloadModules: return "unload the modules of the old driver";
    case StepKind::SwitchVersion:
      return fmt::format("make {} the current version in {}", driver, target.directory);
    case StepKind::SetFirmwarePath: return "tell the kernel where the firmware is";
    case StepKind::LoadModules: return fmt::format("load the modules of {}", driver);
    case StepKind::MakeNodes: return "create the device nodes";
    case StepKind::PlaceLicence: return "place the licence configuration";
    case StepKind::StartServices: return "start the driver's services";
    case StepKind::UpdateLoaderCache: return "update the cache of the loader (ldconfig)";
    case StepKind::WriteGoogleCache:
      return fmt::format("write {}", Layout(target.directory).google_cache());
    case StepKind::Verify: return fmt::format("verify {}", driver);
    case StepKind::KeepAtBoot: return "load the driver at boot, build it for new kernels";
    case StepKind::Record: return "record what is installed";
    case StepKind::RefreshCdi: return "refresh the CDI specification";
    case StepKind::TellAgent: return "tell the agent";
    case StepKind::CleanUp: return "remove temporary files and old versions";
  }
  return "";
}

Result<InstallPlan> make_plan(const PlanInput& input) {
  GANTRY_CHECK(check_directory(input.request.directory));
  GANTRY_CHECK(check_same_kind(input));
  GANTRY_CHECK(check_same_directory(input));
  InstallPlan plan;
  GANTRY_TRY(plan.target, target_of(input));
  plan.kernel = input.request.kernel.empty() ? input.facts.kernel.release : input.request.kernel;
  GANTRY_CHECK(check_loaded_stays(input, plan));
  if (input.packages) {
    plan.target.removal = removal_of(*input.packages);
    plan.notes = input.packages->notes;
    plan.package_commands = to_text(*input.packages);
  }
  plan.steps = steps_for(input, plan);
  for (const auto& newer : input.facts.newer_kernels) {
    if (newer == plan.kernel || !has_own_files(input.request.source)) continue;
    plan.notes.push_back(
        fmt::format("the kernel {0} is installed too and will run after a reboot; its modules: "
                    "sudo gantry driver build --kernel {0}",
                    newer));
  }
  return plan;
}

bool needs_idle_gpus(StepKind kind) {
  switch (kind) {
    case StepKind::Unpack:
    case StepKind::PlaceFiles:
    case StepKind::BuildModules:
    case StepKind::CopyModules: return false;
    default: return true;
  }
}

bool is_same_driver(const InstallRecord& record, const preflight::DriverRequest& request,
                    const PackageInfo& package, std::string_view patch_digest) {
  if (record.source != request.source || record.patch_digest != patch_digest) return false;
  if (request.flavour && record.flavour != request.flavour) return false;
  if (!has_own_files(request.source)) return is_of_branch(record.version, package.version);
  return record.directory == request.directory && same_archive(record, package);
}

}  // namespace gantry::driver_setup
