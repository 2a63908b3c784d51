// SPDX-License-Identifier: Apache-2.0
// gantry driver install, gantry driver upgrade.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "gantry/driver_commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

struct InstallFlags {
  DriverFlags driver;
  bool dry_run = false;
  bool without_boot = false;
  unsigned jobs = 0;
};

void print_preview_json(const driver_setup::SetupPreview& preview, const Context& context) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("dryRun", true);
    out.member("version", preview.plan.target.version);
    out.member("kernel", preview.plan.kernel);
    out.member("upToDate", preview.up_to_date);
    out.member("blocked", preflight::blocks(preview.findings));
    out.array("steps", [&] {
      if (preview.up_to_date) return;
      for (const auto& step : preview.plan.steps)
        out.value(driver_setup::describe(step, preview.plan.target));
    });
    out.member("packageCommands", preview.plan.package_commands);
    out.array("findings", preview.findings, [&](const preflight::Finding& finding) {
      out.object([&] {
        out.member("code", finding.code);
        out.member("severity", preflight::to_string(finding.severity));
        out.member("text", finding.sentence);
        out.member("remedy", finding.remedy);
      });
    });
    out.array("notes", preview.plan.notes);
  });
  fmt::print(context.out, "{}\n", out.text());
}

void print_preview(const driver_setup::SetupPreview& preview, const Context& context) {
  for (const auto& finding : preview.findings) {
    if (finding.severity == preflight::Severity::Notes) continue;
    print_fitting(fmt::format("{}: {}", preflight::to_string(finding.severity), finding.sentence),
                  context);
    if (!finding.remedy.empty()) print_fitting("    fix: " + finding.remedy, context);
  }
  if (preview.up_to_date) {
    fmt::print(context.out, "{} is installed and loaded: nothing to do\n",
               describe(preview.plan.target));
    return;
  }
  for (const auto& step : preview.plan.steps)
    print_fitting("would " + driver_setup::describe(step, preview.plan.target), context);
  if (!preview.plan.package_commands.empty())
    fmt::print(context.out, "with the commands\n{}",
               printable_lines(preview.plan.package_commands));
  for (const auto& note : preview.plan.notes) print_note(printable(note), context);
}

std::string install_sentence(const driver_setup::SetupReport& report) {
  const auto driver = describe(report.record);
  if (!report.changed)
    return fmt::format("The driver {} is installed and loaded: nothing to do.", driver);
  return fmt::format("The driver {} is installed.", driver);
}

Result<int> install_driver(const InstallFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto request, request_of(flags.driver));
  constexpr std::string_view kCommand = "gantry driver install";
  if (flags.dry_run) {
    auto options = driver_options(host, context, request, kCommand);
    if (flags.without_boot) options.program.clear();
    return dry_install(host, request, options, context);
  }
  catch_termination(context);
  ShownDownload download(context);
  GANTRY_TRY(const auto effects, driver_effects(host, context, &download));
  auto options = driver_options(host, context, request, kCommand);
  if (flags.without_boot) options.program.clear();
  if (flags.jobs > 0) options.jobs = flags.jobs;
  auto report = driver_setup::install(host, request, options, *effects);
  download.clear();
  GANTRY_CHECK(report);
  if (!context.json && report->changed)
    fmt::print(context.out, "{}", printable_lines(report->verified.smi_output));
  print_setup_report(*report, install_sentence(*report), context);
  return kOk;
}

// An upgrade of nothing is most likely the wrong machine.
Result<int> upgrade_driver(const InstallFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto record, driver_setup::read_record(host));
  if (!record)
    return Error(Errc::NotFound, "Gantry has installed no driver on this machine")
        .advise("sudo gantry driver install with the same options");
  auto with_directory = flags;
  if (with_directory.driver.request.directory == preflight::kDefaultDirectory)
    with_directory.driver.request.directory = record->directory;
  if (!context.json)
    fmt::print(context.err, "from {} to {}\n", describe(*record),
               flags.driver.request.version.empty() ? "the archive's version"
                                                    : flags.driver.request.version);
  return install_driver(with_directory, context);
}

void add_install_flags(CLI::App& command, Context& context, InstallFlags& flags) {
  add_driver_machine(command, context);
  add_driver_flags(command, flags.driver);
  command.add_flag("--dry-run", flags.dry_run, "Print findings and steps without doing anything");
  command.add_flag("--no-boot", flags.without_boot,
                   "Do not load it at boot, and do not build it for new kernels");
  command.add_option("--jobs", flags.jobs, "Processes that build the modules")->type_name("N");
}

}  // namespace

Result<int> dry_install(const sys::Host& host, const preflight::DriverRequest& request,
                        const driver_setup::SetupOptions& options, const Context& context) {
  GANTRY_TRY(auto preview, driver_setup::preview_install(host, request, options));
  preflight::address_remedies(host, preview.findings);
  if (context.json) {
    print_preview_json(preview, context);
  } else {
    print_preview(preview, context);
  }
  return preflight::blocks(preview.findings) ? kProblem : kOk;
}

void add_driver_install(CLI::App& driver, Context& context, Action& chosen) {
  const auto flags = std::make_shared<InstallFlags>();
  auto* command = driver.add_subcommand(
      "install", "Install and load a driver; the same one again does nothing");
  add_install_flags(*command, context, *flags);
  add_examples(
      *command,
      "  gantry driver install --version 580.159.04 --sha256 HEX --dry-run\n"
      "  sudo gantry driver install --version 580.159.04 --sha256 HEX\n"
      "  sudo gantry driver install --run ./NVIDIA-Linux-x86_64-580.159.04.run\n"
      "  sudo gantry driver install --source packages --version 580\n"
      "  sudo gantry driver install --source precompiled --modules /srv/modules --run FILE\n"
      "  sudo gantry driver install --source grid --run FILE --client-token client.tok\n"
      "  gantry driver install --host-root /host --version 580.159.04 --sha256 HEX  # in a pod\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return install_driver(*flags, c); }; });
}

void add_driver_upgrade(CLI::App& driver, Context& context, Action& chosen) {
  const auto flags = std::make_shared<InstallFlags>();
  auto* command = driver.add_subcommand(
      "upgrade", "Replace the installed driver, and go back to it if the new one fails");
  add_install_flags(*command, context, *flags);
  add_examples(*command,
               "  sudo gantry driver upgrade --version 580.159.04 --sha256 HEX\n"
               "  sudo gantry driver upgrade --run FILE --drain --timeout 600\n"
               "  sudo gantry driver upgrade --run FILE --drain --terminate\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return upgrade_driver(*flags, c); }; });
}

}  // namespace gantry::cli
