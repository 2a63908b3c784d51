// SPDX-License-Identifier: Apache-2.0
// gantry vfio plan: what bind would do, and what is in the way. Changes nothing.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/terminal.hpp"
#include "gantry/vfio_commands.hpp"
#include "vm/vfio/plan_json.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

constexpr const char* kWhyOverride =
    "Why driver_override and not new_id\n"
    "  Many notes bind a GPU to a virtual machine with\n"
    "      echo 10de 15f8 > /sys/bus/pci/drivers/vfio-pci/new_id\n"
    "  That adds the type of the card to vfio-pci, not the card. The kernel at once gives "
    "vfio-pci\n"
    "  every function of that type that has no driver: an equal GPU whose driver is being updated\n"
    "  or failed to start is taken too, and one that appears later may be, until remove_id or a\n"
    "  reboot. The same is true of vfio-pci.ids= on the kernel's command line.\n"
    "  driver_override names one PCI address. Gantry writes it before the unbind, so that nothing\n"
    "  can take the function in between, and clears it on the way back.\n";

struct PlanFlags {
  std::vector<std::string> gpus;
  bool with_nvswitches = false;
  bool explain = false;
};

std::string plan_text(const vfio::Plan& plan, const sys::Host& host) {
  std::string text;
  for (const auto& f : plan.functions) {
    text += fmt::format(
        "{}  {:<16} {:04x}:{:04x}  group {:<4} {} -> {}{}\n", f.address.sysfs(),
        pci::to_string(f.kind), f.id.vendor, f.id.device, f.group ? fmt::to_string(*f.group) : "-",
        f.driver.empty() ? "no driver" : f.driver, f.to_driver, f.done() ? " (done)" : "");
  }
  text += findings_text(plan, host);
  if (plan.blocked() || plan.in_use()) return text;
  const auto journal = vfio::bind_journal(host, plan);
  if (journal.moves.empty()) return text + "Nothing to do: all functions have their vfio driver.\n";
  text += "Steps:\n";
  int number = 0;
  for (const auto& step : vfio::steps_of(journal))
    text += fmt::format("  {:>2}. {}\n", ++number, vfio::describe(journal, step));
  return text;
}

Result<int> show_plan(const PlanFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto state, vfio::read_machine_state(host));
  GANTRY_TRY(const auto targets, find_gpus(state, flags.gpus));
  const auto plan =
      vfio::plan_passthrough(state, {.targets = targets, .with_nvswitches = flags.with_nvswitches});
  if (context.json) {
    json::Writer out(json::Layout::Indented);
    vfio::write_plan(out, for_machine(plan, host));
    fmt::print(context.out, "{}\n", out.text());
  } else {
    fmt::print(context.out, "{}",
               wrap_lines(printable_lines(plan_text(plan, host)), context.columns));
    if (flags.explain) fmt::print(context.out, "\n{}", why_driver_override());
  }
  const bool possible = !plan.blocked() && !plan.in_use();
  if (possible && !plan.complete() && !context.json) {
    fmt::print(context.err, "Do: sudo gantry vfio bind{}{} {}\n", sys::root_flag(host),
               flags.with_nvswitches ? " --with-nvswitches" : "", join_addresses(targets));
  }
  return possible ? kOk : kProblem;
}

}  // namespace

std::string_view why_driver_override() {
  return kWhyOverride;
}

void add_vfio_plan(CLI::App& vfio, Context& context, Action& chosen) {
  const auto flags = std::make_shared<PlanFlags>();
  auto* command = vfio.add_subcommand("plan", "What bind would do, and what is in the way");
  add_machine_options(*command, context);
  add_gpu_names(*command, flags->gpus);
  command->add_flag("--with-nvswitches", flags->with_nvswitches,
                    "All NVSwitches too: the whole board for one virtual machine");
  command->add_flag("--explain", flags->explain, "Also say why driver_override and not new_id");
  add_examples(*command,
               "  gantry vfio plan 0000:3b:00.0\n"
               "  gantry vfio plan 0 1 --with-nvswitches --json\n"
               "  gantry vfio plan 0 --explain\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return show_plan(*flags, c); }; });
}

}  // namespace gantry::cli
