// SPDX-License-Identifier: Apache-2.0
// gantry driver remove, load and build.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "gantry/driver_commands.hpp"
#include "install/driver_setup/idle.hpp"
#include "install/driver_setup/remove.hpp"
#include "install/driver_setup/status.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

using driver_setup::SetupReport;

struct RemoveFlags {
  preflight::DriverRequest request;  // drain
  bool dry_run = false;
};

struct BuildFlags {
  std::string kernel;
  bool all = false;
  bool if_possible = false;
  bool forget = false;
};

Result<int> preview_driver_remove(const sys::Host& host, const Context& context) {
  GANTRY_TRY(const auto steps, driver_setup::preview_remove(host));
  if (context.json) {
    json::Writer out(json::Layout::Indented);
    out.object([&] {
      out.member("schema", kFirstSchema);
      out.member("dryRun", true);
      out.array("steps", steps);
    });
    fmt::print(context.out, "{}\n", out.text());
    return kOk;
  }
  if (steps.empty()) fmt::print(context.out, "Gantry has installed no driver: nothing to do\n");
  for (const auto& step : steps) fmt::print(context.out, "would {}\n", printable(step));
  return kOk;
}

Result<int> remove_driver(const RemoveFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  if (flags.dry_run) return preview_driver_remove(host, context);
  catch_termination(context);
  GANTRY_TRY(const auto effects, driver_effects(host, context));
  const auto options = driver_options(host, context, flags.request, "gantry driver remove");
  GANTRY_TRY(const auto report,
             driver_setup::remove(
                 host,
                 {.drain = flags.request.drain,
                  .terminate = flags.request.terminate,
                  .drain_seconds = flags.request.drain_seconds,
                  .accepts_unknown = driver_setup::accepts_unknown_users(flags.request.ignore)},
                 options, *effects));
  print_setup_report(report,
                     report.record.version.empty()
                         ? "The unfinished installation is taken back."
                         : fmt::format("The driver {} is removed.", describe(report.record)),
                     context);
  return kOk;
}

Result<SetupReport> load_or_build(const sys::Host& host, const driver_setup::SetupOptions& options,
                                  driver_setup::InstallEffects& effects, bool may_build) {
  auto report = driver_setup::load(host, options, effects);
  if (report.ok() || !may_build || report.error().code() != Errc::NotFound) return report;
  const auto kernel = kernel_module::read_running_kernel(host);
  if (!kernel.ok() || !driver_setup::read_record(host).ok()) return report;
  auto built = driver_setup::build(host, kernel->release, options, effects);
  if (!built.ok()) return built;
  return driver_setup::load(host, options, effects);
}

Result<int> load_driver(bool may_build, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  catch_termination(context);
  GANTRY_TRY(const auto effects, driver_effects(host, context));
  const auto options = driver_options(host, context, {}, "gantry driver load");
  GANTRY_TRY(const auto report, load_or_build(host, options, *effects, may_build));
  print_setup_report(report,
                     fmt::format("The driver {} is loaded{}.", describe(report.record),
                                 report.changed ? "" : ": nothing to do"),
                     context);
  return kOk;
}

// A new kernel's headers often come after it; the hook of the headers builds then.
bool headers_come_later(const sys::Host& host, const std::string& kernel) {
  return !kernel_module::find_kernel_headers(host, kernel).ok();
}

Result<int> build_one(const sys::Host& host, const BuildFlags& flags, const std::string& kernel,
                      const driver_setup::SetupOptions& options,
                      driver_setup::InstallEffects& effects, const Context& context) {
  if (flags.forget) {
    GANTRY_CHECK(driver_setup::forget_kernel(host, kernel, effects));
    return kOk;
  }
  if (flags.if_possible && headers_come_later(host, kernel)) {
    print_note(fmt::format("the headers of {} are not installed yet; when they are: sudo gantry "
                           "driver build --kernel {}",
                           kernel, kernel),
               context);
    return kOk;
  }
  GANTRY_TRY(const auto report, driver_setup::build(host, kernel, options, effects));
  print_setup_report(report,
                     fmt::format("The modules of {} for {} are {}.", describe(report.record),
                                 kernel, report.changed ? "built" : "there: nothing to do"),
                     context);
  return kOk;
}

Result<std::vector<std::string>> kernels_to_build(const sys::Host& host, const BuildFlags& flags) {
  if (!flags.kernel.empty()) return std::vector{flags.kernel};
  if (!flags.all) {
    GANTRY_TRY(const auto kernel, kernel_module::read_running_kernel(host));
    return std::vector{kernel.release};
  }
  GANTRY_TRY(const auto status, driver_setup::read_status(host));
  std::vector<std::string> kernels;
  for (const auto& kernel : status.kernels) {
    if (!kernel.has_modules && kernel.missing.empty()) kernels.push_back(kernel.release);
  }
  return kernels;
}

Result<int> build_driver(const BuildFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  catch_termination(context);
  GANTRY_TRY(const auto effects, driver_effects(host, context));
  const auto options = driver_options(host, context, {}, "gantry driver build");
  GANTRY_TRY(const auto kernels, kernels_to_build(host, flags));
  for (const auto& kernel : kernels) {
    GANTRY_TRY(const int status, build_one(host, flags, kernel, options, *effects, context));
    if (status != kOk) return status;
  }
  return kOk;
}

}  // namespace

void add_driver_remove(CLI::App& driver, Context& context, Action& chosen) {
  const auto flags = std::make_shared<RemoveFlags>();
  auto* command =
      driver.add_subcommand("remove", "Take the driver off this machine and leave nothing behind");
  add_driver_machine(*command, context);
  add_drain_flags(*command, flags->request);
  command
      ->add_option("--ignore", flags->request.ignore,
                   "gpu-users-unknown: go on although processes cannot be looked into")
      ->type_name("CODE")
      ->check(CLI::IsMember({"gpu-users-unknown"}).description(""));
  command->add_flag("--dry-run", flags->dry_run, "Print the steps without doing them");
  add_examples(*command,
               "  gantry driver remove --dry-run\n"
               "  sudo gantry driver remove\n"
               "  sudo gantry driver remove --drain --timeout 600\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return remove_driver(*flags, c); }; });
}

void add_driver_load(CLI::App& driver, Context& context, Action& chosen) {
  const auto may_build = std::make_shared<bool>(false);
  auto* command = driver.add_subcommand("load", "Load the installed driver, as at boot");
  add_driver_machine(*command, context);
  command->add_flag("--build", *may_build, "Build its modules first if this kernel has none");
  add_examples(*command, "  sudo gantry driver load\n  sudo gantry driver load --build\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return load_driver(*may_build, c); }; });
}

void add_driver_build(CLI::App& driver, Context& context, Action& chosen) {
  const auto flags = std::make_shared<BuildFlags>();
  auto* command = driver.add_subcommand(
      "build", "Build the installed driver's modules for a kernel, before a reboot into it");
  add_driver_machine(*command, context);
  command->add_option("--kernel", flags->kernel, "Release of the kernel; default: the running one")
      ->type_name("RELEASE");
  command->add_flag("--all", flags->all, "For every installed kernel that has headers");
  command->add_flag("--if-possible", flags->if_possible,
                    "Succeed if the headers are missing, as the hooks of package tools want it");
  command->add_flag("--forget", flags->forget, "Remove what was built for --kernel");
  add_examples(*command,
               "  sudo gantry driver build --kernel 6.1.0-22-amd64\n"
               "  sudo gantry driver build --all\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return build_driver(*flags, c); }; });
}

}  // namespace gantry::cli
