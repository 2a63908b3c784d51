// SPDX-License-Identifier: Apache-2.0
// gantry cdi refresh: updates everything that containers need to start: driver files, inventory and
// CDI specification.
#include "base/sys/shell_command.hpp"
#include "container/publish/refresh.hpp"
#include "gantry/cdi.hpp"
#include "gantry/cdi_options.hpp"
#include "gantry/terminal.hpp"
#include "sim/machine/tree.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <optional>

namespace gantry::cli {
namespace {

struct RefreshFlags {
  SpecFlags spec;
  std::string output;  // "": the machine's default path
  bool take_over = false;
  bool without_nvml = false;
  Deadline deadline;
};

std::string outcome_word(const driver_dir::PublishResult& driver) {
  switch (driver.outcome) {
    case driver_dir::PublishOutcome::Unchanged: return "unchanged";
    case driver_dir::PublishOutcome::Switched: return "in use again";
    case driver_dir::PublishOutcome::Created: break;
  }
  return "new, " + driver.way;
}

void print_refresh(const publish::RefreshResult& done, const sys::Host& host,
                   const sys::Host& output_host, const std::string& output,
                   const Context& context) {
  if (context.quiet) return;
  fmt::print(context.out, "{}: {}\n", host.outside(done.driver.directory),
             outcome_word(done.driver));
  fmt::print(context.out, "{}: {}\n", host.outside(probe::kInventoryPath),
             done.inventory == probe::WriteResult::Replaced ? "written" : "kept");
  fmt::print(context.out, "{}: {} devices, {}\n", output_host.outside(output), done.devices,
             done.spec_changed ? "written" : "unchanged");
  for (const auto& file : done.moved) {
    const auto name = output_host.outside(file);
    fmt::print(context.out, "{}: renamed to {}.before-gantry\n", name, name);
  }
  for (const auto& name : done.collected) fmt::print(context.out, "{}: removed, unused\n", name);
}

Result<int> refresh_now(const RefreshFlags& flags, Context& context) {
  GANTRY_TRY(const auto machine, open_machine(flags.spec, context));
  const auto& host = machine.host;
  publish::RefreshOptions options{.take_over = flags.take_over,
                                  .deadline = flags.deadline.duration()};
  options.driver = machine.driver;
  if (flags.without_nvml) options.nvml = probe::NvmlUse::ForMig;
  GANTRY_TRY(options.spec, spec_options(flags.spec, machine));
  std::optional<sys::Host> elsewhere;
  if (!flags.output.empty()) {
    GANTRY_TRY(auto place, locate_spec(flags.output, host));
    elsewhere = std::move(place.host);
    options.output = std::move(place.path);
    if (elsewhere) options.output_host = &*elsewhere;
  }
  GANTRY_TRY(const auto done,
             while_waiting(context, [&] { return publish::refresh(host, options); }));
  print_refresh(done, host, elsewhere ? *elsewhere : host, options.output, context);
  if (!context.quiet && !elsewhere && sim::read_marker(host.root()).ok()) {
    fmt::print(context.out,
               "This is a simulated machine. For the engines of this one: {}gantry sim use{}\n",
               ::geteuid() == 0 ? "" : "sudo ", sys::root_flag(host));
  }
  print_notes(done.notes, context);
  return kOk;
}

}  // namespace

void add_cdi_refresh(CLI::App& cdi, Context& context, Action& chosen) {
  auto flags = std::make_shared<RefreshFlags>();
  auto* command = cdi.add_subcommand(
      "refresh", "Prepare the driver's files, write the inventory and the CDI specification");
  add_root_option(*command, context);
  command
      ->add_option(
          "-o,--output", flags->output,
          "File to write, not relative to --root (default: the machine's /var/run/cdi/nvidia.yaml)")
      ->type_name("FILE");
  add_take_over(*command, flags->take_over);
  command->add_flag(
      "--no-nvml", flags->without_nvml,
      "Ask NVML only if there are MIG instances; brand, architecture and health stay unknown");
  add_spec_flags(*command, flags->spec);
  add_deadline(*command, flags->deadline);
  add_examples(
      *command,
      "  gantry cdi refresh              # after boot, a driver upgrade or a change of MIG\n"
      "  gantry cdi refresh --take-over  # instead of nvidia-cdi-refresh.service\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return refresh_now(*flags, c); }; });
}

}  // namespace gantry::cli
