// SPDX-License-Identifier: Apache-2.0
// gantry mig: the MIG instances of this machine.
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/commands.hpp"
#include "gantry/mig_commands.hpp"
#include "gantry/terminal.hpp"
#include "gpu/mig/config_write.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

void tell_interrupted_mig(const std::vector<mig::MigGpu>& gpus, const MigView& view,
                          const Context& context) {
  for (const auto& problem : view.stored.problems) print_note(printable(problem.text()), context);
  for (const auto& gpu : gpus) {
    const auto* state = view.state_of(gpu.pci);
    if (state == nullptr || !state->change) continue;
    print_note(fmt::format("a change of {} was interrupted: complete it with `sudo gantry mig "
                           "restore`, or go back with `sudo gantry mig restore --former` (it was "
                           "`{}`)",
                           mig_label(gpu), printable(state->change->what)),
               context);
  }
}

Result<int> list_mig(const MigFlags& flags, bool profiles, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  mig_change::LiveDriver driver(host, mig_session_options(flags));
  GANTRY_TRY(auto view, while_waiting(context, [&] { return view_mig(host, driver); }));
  auto gpus = view.gpus;
  if (!flags.gpus.empty()) {
    GANTRY_TRY(gpus, chosen_mig_gpus(view.gpus, flags.gpus, true));
  }
  if (!profiles) find_mig_users(host, gpus, view);
  if (context.json) {
    fmt::print(context.out, "{}\n", mig_json(gpus, view));
    return kOk;
  }
  if (gpus.empty()) {
    fmt::print(context.out, "No NVIDIA GPU.\n");
    return kOk;
  }
  fmt::print(context.out, "{}",
             profiles ? mig_profiles_table(gpus, context.columns)
                      : mig_instances_table(gpus, view, context.columns));
  tell_interrupted_mig(gpus, view, context);
  return kOk;
}

Result<int> run_mig_restore(const MigFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  mig_change::LiveDriver driver(host, mig_session_options(flags));
  const auto restored = while_waiting(context, [&]() -> Result<std::vector<MigOutcome>> {
    GANTRY_TRY(auto view, view_mig(host, driver));
    return restore_mig(host, flags, driver, view, context);
  });
  if (!restored.ok()) return restored.error();
  return print_mig_changes(*restored, flags, context);
}

// {"schema":1,"applied":true}
void print_mig_verdict(std::string_view name, bool verdict, const Context& context) {
  json::Writer out;
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member(name, verdict);
  });
  fmt::print(context.out, "{}\n", out.text());
}

void add_mig_gpus(CLI::App& command, MigFlags& flags) {
  command.add_option("--gpu", flags.gpus, "Only these GPUs: index, PCI address or UUID; or `all`")
      ->type_name("GPU")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_mig_deadline(CLI::App& command, MigFlags& flags) {
  command.add_option("--deadline", flags.deadline_seconds, "Seconds for one request to the driver")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0).description(""))
      ->capture_default_str();
}

// What the GPUs should have.
void add_mig_target(CLI::App& command, MigFlags& flags) {
  command.add_option("layout", flags.layout,
                     "The instances, such as 3g.71gb,2x1g.18gb; `on` or `off` for the mode alone");
  command.add_option("-f,--config-file", flags.file, "Configuration file of mig-parted")
      ->type_name("FILE")
      ->transform(absolute_path());
  command.add_option("-c,--selected-config", flags.set, "Name of the configuration in the file")
      ->type_name("NAME");
  command.add_flag("--mode-only", flags.mode_only, "Only the MIG mode; instances stay");
  add_mig_gpus(command, flags);
}

void add_mig_changing(CLI::App& command, MigFlags& flags) {
  command
      .add_option("--drain", flags.drain_seconds,
                  "Wait this long until pods and processes have let go of what is removed")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0).description(""));
  command.add_flag("--reset", flags.reset, "Reset a GPU whose mode changes only with a reset");
  command.add_flag("--dry-run", flags.dry_run, "Show the steps without doing them");
}

void add_mig_list(CLI::App& mig, Context& context, Action& chosen) {
  auto flags = std::make_shared<MigFlags>();
  auto profiles = std::make_shared<bool>(false);
  auto* command = mig.add_subcommand("list", "Show GPUs, their MIG instances and who uses them");
  add_mig_gpus(*command, *flags);
  command->add_flag("--profiles", *profiles, "Show what each GPU can have instead");
  add_mig_deadline(*command, *flags);
  add_machine_options(*command, context);
  add_examples(*command,
               "  gantry mig list\n"
               "  gantry mig list --profiles --gpu 0\n"
               "  gantry mig list --json | jq '.gpus[].instances[]'\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return list_mig(*flags, *profiles, c); }; });
}

void add_mig_plan(CLI::App& mig, Context& context, Action& chosen) {
  auto flags = std::make_shared<MigFlags>();
  flags->dry_run = true;
  auto* command = mig.add_subcommand("plan", "Show what apply would keep, destroy and create");
  add_mig_target(*command, *flags);
  add_mig_deadline(*command, *flags);
  add_machine_options(*command, context);
  add_examples(*command,
               "  gantry mig plan --gpu 0 3g.71gb,2g.35gb,1g.18gb\n"
               "  gantry mig plan -f mig.yaml -c all-balanced --json\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return apply_mig(*flags, c); }; });
}

void add_mig_apply(CLI::App& mig, Context& context, Action& chosen) {
  auto flags = std::make_shared<MigFlags>();
  auto* command = mig.add_subcommand("apply", "Give GPUs these MIG instances and no others");
  add_mig_target(*command, *flags);
  add_mig_changing(*command, *flags);
  add_mig_deadline(*command, *flags);
  add_machine_options(*command, context);
  add_examples(*command,
               "  sudo gantry mig apply --gpu 0 3g.71gb,2g.35gb,1g.18gb\n"
               "  sudo gantry mig apply --gpu all 7x1g.18gb --drain 300  # waits for pods\n"
               "  sudo gantry mig apply --gpu 0,1 off\n"
               "  sudo gantry mig apply -f mig.yaml -c all-balanced\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return apply_mig(*flags, c); }; });
}

void add_mig_assert(CLI::App& mig, Context& context, Action& chosen) {
  auto flags = std::make_shared<MigFlags>();
  auto* command =
      mig.add_subcommand("assert", "Check that a layout is applied (exit status 1 if not)");
  add_mig_target(*command, *flags);
  command->add_flag("-a,--valid-config", flags->valid_only,
                    "Check only that the file is valid and has the configuration");
  add_mig_deadline(*command, *flags);
  add_machine_options(*command, context);
  add_examples(*command, "  gantry mig assert -f mig.yaml -c all-balanced && echo applied\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return assert_mig(*flags, c); }; });
}

void add_mig_export(CLI::App& mig, Context& context, Action& chosen) {
  auto flags = std::make_shared<MigFlags>();
  auto* command =
      mig.add_subcommand("export", "Print the present state as a configuration of mig-parted");
  flags->set = "current";
  command->add_option("-l,--config-label", flags->set, "Name of the configuration")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("-o,--output-format", flags->format, "yaml or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json"}).description(""))
      ->capture_default_str();
  add_mig_deadline(*command, *flags);
  add_root_option(*command, context);
  add_examples(*command, "  gantry mig export > mig.yaml\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return export_mig(*flags, c); }; });
}

void add_mig_restore(CLI::App& mig, Context& context, Action& chosen) {
  auto flags = std::make_shared<MigFlags>();
  auto* command = mig.add_subcommand(
      "restore", "Create again what should exist: after a reboot or an interrupted change");
  add_mig_gpus(*command, *flags);
  command->add_flag("--former", flags->former,
                    "Go back to the layout before an interrupted change instead");
  add_mig_changing(*command, *flags);
  add_mig_deadline(*command, *flags);
  add_machine_options(*command, context);
  add_examples(*command,
               "  sudo gantry mig restore            # what gantry-mig.service does at boot\n"
               "  sudo gantry mig restore --former   # undoes a change that was interrupted\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return run_mig_restore(*flags, c); }; });
}

}  // namespace

Result<int> apply_mig(const MigFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  mig_change::LiveDriver driver(host, mig_session_options(flags));
  const auto changed = while_waiting(context, [&]() -> Result<std::vector<MigOutcome>> {
    GANTRY_TRY(auto view, view_mig(host, driver));
    GANTRY_TRY(const auto targets, mig_targets(flags, view));
    std::vector<mig::MigGpu> gpus;
    for (const auto& target : targets) gpus.push_back(target.gpu);
    find_mig_users(host, gpus, view);
    return change_mig(host, flags, targets, driver, view, context);
  });
  if (!changed.ok()) return changed.error();
  return print_mig_changes(*changed, flags, context);
}

Result<int> assert_mig(const MigFlags& flags, Context& context) {
  if (flags.valid_only) {
    GANTRY_TRY(const auto config, read_mig_config(flags.file));
    GANTRY_CHECK(mig::find_config(config, flags.set));
    if (context.json) print_mig_verdict("valid", true, context);
    return kOk;
  }
  GANTRY_TRY(const auto host, open_host(context));
  mig_change::LiveDriver driver(host, mig_session_options(flags));
  GANTRY_TRY(const auto view, while_waiting(context, [&] { return view_mig(host, driver); }));
  GANTRY_TRY(const auto targets, mig_targets(flags, view));
  std::vector<std::string> differ;
  for (const auto& target : targets) {
    if (!is_applied(target, view, flags.mode_only)) differ.push_back(mig_label(target.gpu));
  }
  if (context.json) {
    print_mig_verdict("applied", differ.empty(), context);
  } else if (!differ.empty()) {
    fmt::print(context.err, "Not applied on {}.\n", fmt::join(differ, ", "));
  } else if (!context.quiet) {
    fmt::print(context.out, "Applied.\n");
  }
  return differ.empty() ? kOk : kProblem;
}

Result<int> export_mig(const MigFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  mig_change::LiveDriver driver(host, mig_session_options(flags));
  GANTRY_TRY(const auto view, while_waiting(context, [&] { return view_mig(host, driver); }));
  const auto config = mig::export_config(view.gpus, flags.set);
  fmt::print(context.out, "{}",
             flags.format == "json" ? mig::to_json(config) + "\n" : mig::to_yaml(config));
  return kOk;
}

void add_mig_command(CLI::App& app, Context& context, Action& chosen) {
  auto* command = app.add_subcommand("mig", "MIG instances: list, plan, apply, restore");
  command->require_subcommand(1);
  add_mig_list(*command, context, chosen);
  add_mig_plan(*command, context, chosen);
  add_mig_apply(*command, context, chosen);
  add_mig_assert(*command, context, chosen);
  add_mig_export(*command, context, chosen);
  add_mig_restore(*command, context, chosen);
}

}  // namespace gantry::cli
