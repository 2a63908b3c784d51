// SPDX-License-Identifier: Apache-2.0
// gantry gpu: acts on one GPU of this machine.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/commands.hpp"
#include "gantry/refresh_cdi.hpp"
#include "gantry/terminal.hpp"
#include "gpu/model/enum_names.hpp"
#include "gpu/reset/reset.hpp"
#include "node/owner_lease/local_usage.hpp"
#include "node/owner_lease/with_ownership.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

struct ResetOptions {
  std::string gpu;
  double drain_seconds = 0;
  bool dry_run = false;
};

// The input of a reset, and its result.
struct ResetReport {
  reset::ResetPlan plan;
  ownership::Owner owner = ownership::Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::vector<std::string> holders;
  bool done = false;
};

std::string to_document(const ResetReport& report) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", 1);
    out.member("gpu", report.plan.gpu.sysfs());
    out.member("driver", report.plan.driver);
    out.member("method", report.plan.method);
    out.member("owner", ownership::to_string(report.owner));
    out.member("use", model::to_string(report.use));
    out.array("steps", reset::describe_steps(report.plan));
    out.array("warnings", report.plan.warnings);
    out.array("holders", report.holders);
    out.member("done", report.done);
  });
  return std::move(out).text() + "\n";
}

void print_wrapped(const std::string& line, const Context& context) {
  fmt::print(context.out, "{}", wrap_lines(line, context.columns));
}

void print_plan(const ResetReport& report, Context& context) {
  fmt::print(context.out, "{} ({}, owner {})\n", report.plan.gpu.sysfs(),
             report.plan.driver.empty() ? "no driver" : printable(report.plan.driver),
             ownership::to_string(report.owner));
  for (const auto& step : reset::describe_steps(report.plan))
    print_wrapped(fmt::format("  would {}\n", printable(step)), context);
  for (const auto& holder : report.holders)
    print_wrapped(fmt::format("  in use by {}\n", printable(holder)), context);
}

std::string reset_command(const model::PciAddress& gpu, const sys::Host& host) {
  return fmt::format("gantry gpu reset {}{}", gpu.sysfs(), sys::root_flag(host));
}

// A card that is on its way to another owner must arrive first, or go back.
Result<ResetReport> look_before_reset(const sys::Host& host, const ResetOptions& options) {
  ResetReport report;
  GANTRY_TRY(const auto gpu, reset::find_gpu(host, options.gpu));
  GANTRY_TRY(report.plan, reset::plan_reset(host, gpu));
  GANTRY_TRY(const auto ledger, ownership::OwnershipStore::peek(host));
  if (const auto* known = ledger.find(gpu)) {
    report.owner = known->owner;
    report.use = known->use;
  }
  const auto* intent = ledger.intent(gpu);
  if (intent == nullptr || intent->what == reset_command(gpu, host)) return report;
  return Error(Errc::Busy,
               fmt::format("the owner of {} is being changed: {}", gpu.sysfs(), describe(*intent)))
      .advise(fmt::format("if that has ended, repeat it first: {}", intent->what));
}

Error with_advice(Error error) {
  if (error.code() != Errc::Busy || !error.remedy().empty()) return error;
  return std::move(error).advise("wait for them with --drain SECONDS, or end them");
}

// The files of another tree are not the kernel's: writing to them resets nothing.
Status check_this_machine(const sys::Host& host) {
  if (sys::real_kernel()->is_this_machine(host)) return {};
  return Error(Errc::Unsupported,
               fmt::format("{} is not the machine that this command runs on, and only a machine's "
                           "own kernel can reset its GPUs",
                           host.root()))
      .advise("see the steps with --dry-run");
}

// The owner is recorded again afterwards, so it must still be the one that was read at first.
Status reset_for_owner(const sys::Host& host, const ResetReport& report) {
  const auto ledger = ownership::OwnershipStore::peek(host);
  if (!ledger.ok()) return Error(Errc::Busy, ledger.error().text());  // nothing was done
  const auto* known = ledger->find(report.plan.gpu);
  if (known == nullptr || (known->owner == report.owner && known->use == report.use))
    return reset::run_reset(host, report.plan, reset::write_to_kernel(host));
  return Error(Errc::Busy, fmt::format("another command changed the owner of {} to {}; nothing was "
                                       "done",
                                       report.plan.gpu.sysfs(), ownership::to_string(known->owner)))
      .advise(fmt::format("repeat the command: {}", reset_command(report.plan.gpu, host)));
}

// A reset that failed may have given the GPU another minor number all the same.
Status reset_and_settle(const sys::Host& host, const ResetOptions& options,
                        const ResetReport& report, Context& context) {
  bool begun = false;
  auto done = owner_lease::with_ownership(
      host,
      {.gpu = report.plan.gpu,
       .to = report.owner,
       .use = report.use,
       .what = reset_command(report.plan.gpu, host)},
      {.wait = std::chrono::milliseconds(static_cast<long>(options.drain_seconds * 1000)),
       .progress = [&](const std::string& text) { print_note(text, context); }},
      [&] {
        begun = true;
        return reset_for_owner(host, report);
      });
  if (begun) refresh_cdi(host, context);
  if (!done.ok()) return with_advice(std::move(done).error());
  return {};
}

Result<int> reset_gpu(const ResetOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(auto report, look_before_reset(host, options));
  for (const auto& warning : report.plan.warnings) print_note(warning, context);
  if (options.dry_run) {
    auto usage = owner_lease::local_usage(host, report.plan.gpu);
    if (!usage.ok()) print_note("who uses it is unknown: " + usage.error().text(), context);
    if (usage.ok()) report.holders = std::move(usage->holders);
    if (!context.json) print_plan(report, context);
  } else {
    GANTRY_CHECK(check_this_machine(host));
    GANTRY_CHECK(reset_and_settle(host, options, report, context));
    report.done = true;
    if (!context.json)
      fmt::print(context.out, "{} was reset{}.\n", report.plan.gpu.sysfs(),
                 report.plan.method.empty() ? "" : fmt::format(" ({})", report.plan.method));
  }
  if (context.json) fmt::print(context.out, "{}", to_document(report));
  return kOk;
}

void add_gpu_reset(CLI::App& gpu, Context& context, Action& chosen) {
  auto options = std::make_shared<ResetOptions>();
  auto* command = gpu.add_subcommand(
      "reset", "Reset a GPU that nothing uses, and give it back to its driver and its owner");
  add_machine_options(*command, context);
  command->add_option("gpu", options->gpu, "PCI address, UUID or index of the GPU")
      ->type_name("GPU")
      ->required();
  command
      ->add_option("--drain", options->drain_seconds,
                   "Wait this long until pods, shares and processes have let go of it")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0));
  command->add_flag("--dry-run", options->dry_run, "Print what would be done, and who uses it");
  add_examples(*command,
               "  sudo gantry gpu reset 0000:3b:00.0\n"
               "  sudo gantry gpu reset 0 --dry-run        # the steps, and who uses the GPU\n"
               "  sudo gantry gpu reset 0 --drain 300      # waits until its pods have ended\n"
               "  sudo gantry gpu reset GPU-1a2b3c4d --json\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return reset_gpu(*options, c); }; });
}

}  // namespace

void add_gpu(CLI::App& app, Context& context, Action& chosen) {
  auto* gpu = app.add_subcommand("gpu", "Act on one GPU: reset");
  gpu->require_subcommand(1);
  add_gpu_reset(*gpu, context, chosen);
}

}  // namespace gantry::cli
