// SPDX-License-Identifier: Apache-2.0
// gantry driver status: what is installed, loaded and built.
// gantry driver verify: whether the driver works.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/driver_commands.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/status.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

using driver_setup::InstallRecord;
using driver_setup::VerifyReport;
using driver_setup::VerifyState;

Result<int> show_driver_status(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto status, driver_setup::read_status(host));
  if (context.json) {
    fmt::print(context.out, "{}", to_json(status));
  } else {
    print_fitting(to_text(status), context);
    for (const auto& note : status.notes) print_note(printable(note), context);
  }
  return status.unfinished ? kProblem : kOk;
}

// A driver that Gantry did not install has no files of ours, but can be asked.
Result<InstallRecord> record_to_verify(const sys::Host& host) {
  GANTRY_TRY(auto record, driver_setup::read_record(host));
  if (record) return *std::move(record);
  const auto loaded = procfs::read_version(host);
  if (!loaded.ok() || loaded->version.empty())
    return Error(Errc::NotFound, "no driver is installed by Gantry, and none is loaded")
        .advise("sudo gantry driver install --version VERSION");
  const bool container = host.exists("/run/nvidia/driver/usr/bin/nvidia-smi");
  return InstallRecord{
      .source = container ? preflight::Source::NvidiaContainer : preflight::Source::Packages,
      .version = loaded->version};
}

std::string verify_json(const InstallRecord& record, const VerifyReport& report,
                        const sys::Host& host) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("version", record.version);
    out.member("good", report.good());
    out.array("checks", report.items, [&](const driver_setup::VerifyItem& item) {
      out.object([&] {
        out.member("code", item.code);
        out.member("state", driver_setup::to_string(item.state));
        out.member("text", item.sentence);
        out.member("remedy", sys::remedy_for(host, item.remedy));
      });
    });
  });
  return std::move(out).text() + "\n";
}

void print_verify(const VerifyReport& report, const sys::Host& host, const Context& context) {
  fmt::print(context.out, "{}", printable_lines(report.smi_output));
  for (const auto& item : report.items) {
    print_fitting(fmt::format("{:<5} {}", driver_setup::to_string(item.state), item.sentence),
                  context);
    if (item.state != VerifyState::Good && !item.remedy.empty())
      print_fitting("      fix: " + sys::remedy_for(host, item.remedy), context);
  }
}

Result<int> verify_driver(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto record, record_to_verify(host));
  const auto effects = driver_effects(host, context);
  const auto report = driver_setup::verify(host, record, driver_setup::VerifyDepth::Machine,
                                           effects.ok() ? effects->get() : nullptr);
  if (context.json) {
    fmt::print(context.out, "{}", verify_json(record, report, host));
  } else {
    print_verify(report, host, context);
    if (!effects.ok())
      print_note("nvidia-smi is not run: this is a tree of files, not the running machine",
                 context);
  }
  return report.good() ? kOk : kProblem;
}

}  // namespace

void add_driver_status(CLI::App& driver, Context& context, Action& chosen) {
  auto* command = driver.add_subcommand(
      "status", "What is installed, loaded and built, and work that did not end");
  add_driver_machine(*command, context);
  add_examples(*command,
               "  gantry driver status\n"
               "  gantry driver status --json | jq -r '.kernels[] | select(.hasModules | not)'\n");
  command->callback([&chosen] { chosen = [](Context& c) { return show_driver_status(c); }; });
}

void add_driver_verify(CLI::App& driver, Context& context, Action& chosen) {
  auto* command = driver.add_subcommand(
      "verify", "Whether the driver works: files, modules, nodes, nvidia-smi, CDI, licence");
  add_driver_machine(*command, context);
  add_examples(*command, "  sudo gantry driver verify\n  gantry driver verify --json\n");
  command->callback([&chosen] { chosen = [](Context& c) { return verify_driver(c); }; });
}

}  // namespace gantry::cli
