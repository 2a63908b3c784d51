// SPDX-License-Identifier: Apache-2.0
// gantry cdi refresh: everything containers start from, made anew.
#include "gantry/cdi.hpp"
#include "gantry/cdi_options.hpp"
#include "refresh/refresh.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

struct RefreshFlags {
  SpecFlags spec;
  std::string output{refresh::kSpecPath};
  bool take_over = false;
  bool without_nvml = false;
  Deadline deadline;
};

std::string outcome_word(const prepared::Published& driver) {
  switch (driver.outcome) {
    case prepared::Outcome::Current: return "as it was";
    case prepared::Outcome::Switched: return "in force again";
    case prepared::Outcome::Made: break;
  }
  return "new, " + driver.way;
}

void print(const refresh::Refreshed& done, const RefreshFlags& flags, const sys::Host& host,
           Context& context) {
  if (context.quiet) return;
  fmt::print(context.out, "{}: {}\n", host.outside(done.driver.directory),
             outcome_word(done.driver));
  fmt::print(context.out, "{}: {}\n", host.outside(probe::kInventoryPath),
             done.inventory == probe::Written::Replaced ? "written" : "kept");
  fmt::print(context.out, "{}: {} devices, {}\n", host.outside(flags.output), done.devices,
             done.spec_changed ? "written" : "as it was");
  for (const auto& name : done.moved)
    fmt::print(context.out, "{}: moved to {}.before-gantry\n", name, name);
  for (const auto& name : done.collected) fmt::print(context.out, "{}: removed, unused\n", name);
}

Result<int> refresh_now(const RefreshFlags& flags, Context& context) {
  apply_driver_root(flags.spec, context);
  GANTRY_TRY(const auto host, open_host(context));
  refresh::RefreshOptions options{
      .output = flags.output, .take_over = flags.take_over, .deadline = flags.deadline.duration()};
  if (flags.without_nvml) options.nvml = probe::UseNvml::ForMig;
  GANTRY_TRY(options.spec, spec_options(flags.spec, host));
  GANTRY_TRY(const auto done, refresh::refresh(host, options));
  print(done, flags, host, context);
  print_notes(done.notes, context);
  return kOk;
}

}  // namespace

void add_cdi_refresh(CLI::App& cdi, Context& context, Action& chosen) {
  auto flags = std::make_shared<RefreshFlags>();
  auto* command = cdi.add_subcommand(
      "refresh", "Prepare the driver's files, write the inventory and the CDI specification");
  add_root_option(*command, context);
  command->add_option("-o,--output", flags->output, "The specification, inside the root")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->capture_default_str();
  command->add_flag("--take-over", flags->take_over,
                    "Rename another tool's specification of this kind to FILE.before-gantry");
  command->add_flag(
      "--no-nvml", flags->without_nvml,
      "Ask NVML only where there are MIG instances; brand, architecture and health stay unknown");
  add_spec_flags(*command, flags->spec);
  add_deadline(*command, flags->deadline);
  add_examples(
      *command,
      "  gantry cdi refresh              # after boot, a driver upgrade or a change of MIG\n"
      "  gantry cdi refresh --take-over  # instead of nvidia-cdi-refresh.service\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return refresh_now(*flags, c); }; });
}

}  // namespace gantry::cli
