// SPDX-License-Identifier: Apache-2.0
#include "gantry/nvidia_mig_parted.hpp"

#include "base/sys/replace_file.hpp"
#include "gantry/mig_commands.hpp"
#include "gantry/mig_hooks.hpp"
#include "gantry/terminal.hpp"
#include "gpu/mig/checkpoint.hpp"
#include "gpu/mig/config_write.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

constexpr std::size_t kMaxCheckpoint = std::size_t{1} << 20;

struct PartedFlags {
  std::string file;  // config-file or checkpoint-file
  std::string set;
  std::string hooks;
  std::string label = "current";
  std::string format = "yaml";
  std::string output;  // generate-config; "": standard output
  bool mode_only = false;
  bool skip_reset = false;
  bool valid_only = false;
  bool debug = false;
};

Status need_file(const PartedFlags& flags, std::string_view name) {
  if (!flags.file.empty()) return {};
  return Error(Errc::Invalid, fmt::format("missing required flags '{}'", name));
}

// Every GPU by a file: what it wants of each, from what the machine has.
using FindTargets = std::function<Result<std::vector<MigTarget>>(const MigView& view)>;

FindTargets targets_of_config(const mig::MigConfigFile& config, const std::string& set) {
  return [config, set](const MigView& view) { return mig_targets(config, set, view); };
}

// A GPU of the checkpoint that this machine does not have is an error: it would be left out
// silently.
FindTargets targets_of_checkpoint(const PartedFlags& flags) {
  return [flags](const MigView& view) -> Result<std::vector<MigTarget>> {
    GANTRY_TRY(const auto here, sys::Host::at("/"));
    GANTRY_TRY(const auto text, here.read(flags.file, kMaxCheckpoint).in("reading the checkpoint"));
    GANTRY_TRY(const auto saved, mig::parse_checkpoint(text, flags.file));
    std::vector<MigTarget> targets;
    for (const auto& one : saved) {
      const auto gpu = std::find_if(view.gpus.begin(), view.gpus.end(),
                                    [&](const auto& other) { return other.uuid == one.uuid; });
      if (gpu == view.gpus.end())
        return Error(Errc::NotFound, fmt::format("this machine has no GPU {}", one.uuid.text));
      GANTRY_TRY(auto request, mig::saved_layout(one, *gpu));
      targets.push_back({.gpu = *gpu, .request = std::move(request)});
    }
    return targets;
  };
}

// One run of the program on the machine.
class PartedRun {
 public:
  PartedRun(const sys::Host& host, const PartedFlags& flags, Context& context)
      : host_(host), flags_(flags), context_(context), driver_(host, mig_session_options({})) {}

  // Every GPU has the mode, and unless `mode_only` the instances.
  Result<bool> is_applied(const FindTargets& find, bool mode_only) {
    GANTRY_TRY(const auto view, view_mig(host_, driver_));
    GANTRY_TRY(const auto targets, find(view));
    return std::all_of(targets.begin(), targets.end(), [&](const MigTarget& target) {
      return cli::is_applied(target, view, mode_only);
    });
  }

  Status apply(const FindTargets& find, bool mode_only) {
    GANTRY_TRY(auto view, view_mig(host_, driver_));
    GANTRY_TRY(const auto targets, find(view));
    std::vector<mig::MigGpu> gpus;
    for (const auto& target : targets) gpus.push_back(target.gpu);
    find_mig_users(host_, gpus, view);
    const MigFlags flags{.mode_only = mode_only, .reset = !flags_.skip_reset};
    GANTRY_TRY(const auto outcomes, change_mig(host_, flags, targets, driver_, view, context_));
    for (const auto& outcome : outcomes) {
      if (outcome.failed) return Error(*outcome.failed).in(mig_label(outcome.gpu));
      if (outcome.report.pending.empty() || (mode_only && flags_.skip_reset)) continue;
      return Error(Errc::Busy, fmt::format("{}: the MIG mode is pending: {}",
                                           mig_label(outcome.gpu), outcome.report.pending))
          .advise(fmt::format("sudo gantry gpu reset {}", outcome.gpu.pci.sysfs()));
    }
    return {};
  }

  Result<MigView> view() { return view_mig(host_, driver_); }

 private:
  const sys::Host& host_;
  const PartedFlags& flags_;
  Context& context_;
  mig_change::LiveDriver driver_;
};

// What hooks get of the flags, as mig-parted names it.
std::map<std::string, std::string> hook_environment(const PartedFlags& flags, bool checkpoint) {
  std::map<std::string, std::string> all{
      {"MIG_PARTED_HOOKS_FILE", flags.hooks},
      {"MIG_PARTED_MODE_CHANGE_ONLY", flags.mode_only ? "true" : "false"}};
  if (checkpoint) {
    all["MIG_PARTED_CHECKPOINT_FILE"] = flags.file;
    return all;
  }
  all["MIG_PARTED_CONFIG_FILE"] = flags.file;
  all["MIG_PARTED_SELECTED_CONFIG"] = flags.set;
  all["MIG_PARTED_SKIP_RESET"] = flags.skip_reset ? "true" : "false";
  return all;
}

class HookedApply {
 public:
  HookedApply(PartedRun& run, const PartedFlags& flags, mig::MigHooks hooks,
              std::map<std::string, std::string> environment, const Context& context)
      : run_(run),
        flags_(flags),
        hooks_(std::move(hooks)),
        environment_(std::move(environment)),
        context_(context) {}

  // apply-exit runs also after a failure, unless apply-start failed.
  Status apply(const FindTargets& find) {
    GANTRY_CHECK(run_hooks(hooks_.apply_start, "apply-start"));
    auto done = apply_between(find);
    auto ended = run_hooks(hooks_.apply_exit, "apply-exit");
    return done.ok() ? ended : done;
  }

 private:
  Status apply_between(const FindTargets& find) {
    GANTRY_TRY(const bool has_mode, run_.is_applied(find, true));
    if (!has_mode) {
      GANTRY_CHECK(run_hooks(hooks_.pre_apply_mode, "pre-apply-mode"));
      GANTRY_CHECK(run_.apply(find, true));
    }
    if (flags_.mode_only) return {};
    GANTRY_TRY(const bool has_instances, run_.is_applied(find, false));
    if (has_instances) return {};
    GANTRY_CHECK(run_hooks(hooks_.pre_apply_config, "pre-apply-config"));
    return run_.apply(find, false);
  }

  Status run_hooks(const std::vector<mig::HookCommand>& hooks, std::string_view name) const {
    return run_mig_hooks(hooks, name, environment_, flags_.debug, context_);
  }

  PartedRun& run_;
  const PartedFlags& flags_;
  mig::MigHooks hooks_;
  std::map<std::string, std::string> environment_;
  const Context& context_;
};

Result<int> apply_with_hooks(const PartedFlags& flags, const FindTargets& find, bool checkpoint,
                             Context& context) {
  GANTRY_TRY(auto hooks, read_mig_hooks(flags.hooks));
  GANTRY_TRY(const auto host, open_host(context));
  PartedRun run(host, flags, context);
  GANTRY_CHECK(while_waiting(context, [&] {
    return HookedApply(run, flags, std::move(hooks), hook_environment(flags, checkpoint), context)
        .apply(find);
  }));
  fmt::print(context.out, "MIG configuration {} successfully\n",
             checkpoint ? "restored" : "applied");
  return kOk;
}

// Sets the name of the only configuration, which hooks are told.
Result<mig::MigConfigFile> read_selected(PartedFlags& flags) {
  GANTRY_CHECK(need_file(flags, "config-file"));
  GANTRY_TRY(auto config, read_mig_config(flags.file));
  GANTRY_CHECK(mig::find_config(config, flags.set));
  if (flags.set.empty()) flags.set = config.configs.begin()->first;
  return config;
}

Result<int> parted_apply(const PartedFlags& given, Context& context) {
  auto flags = given;
  GANTRY_TRY(const auto config, read_selected(flags));
  return apply_with_hooks(flags, targets_of_config(config, flags.set), false, context);
}

Result<int> parted_restore(const PartedFlags& flags, Context& context) {
  GANTRY_CHECK(need_file(flags, "checkpoint-file"));
  return apply_with_hooks(flags, targets_of_checkpoint(flags), true, context);
}

Result<int> parted_assert(const PartedFlags& given, Context& context) {
  auto flags = given;
  GANTRY_TRY(const auto config, read_selected(flags));
  if (flags.valid_only) {
    fmt::print(context.out, "Selected MIG configuration is valid\n");
    return kOk;
  }
  GANTRY_TRY(const auto host, open_host(context));
  PartedRun run(host, flags, context);
  GANTRY_TRY(const bool applied, while_waiting(context, [&] {
               return run.is_applied(targets_of_config(config, flags.set), flags.mode_only);
             }));
  if (!applied)
    return Error(Errc::NotFound, "assertion failure: selected configuration not currently applied");
  fmt::print(context.out, "Selected MIG {} currently applied\n",
             flags.mode_only ? "mode settings from configuration" : "configuration");
  return kOk;
}

std::string as_format(const mig::MigConfigFile& config, const std::string& format) {
  return format == "json" ? mig::to_json(config) + "\n" : mig::to_yaml(config);
}

Result<MigView> view_of_machine(const PartedFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  PartedRun run(host, flags, context);
  return while_waiting(context, [&] { return run.view(); });
}

Result<int> parted_export(const PartedFlags& flags, Context& context) {
  GANTRY_TRY(const auto view, view_of_machine(flags, context));
  fmt::print(context.out, "{}",
             as_format(mig::export_config(view.gpus, flags.label), flags.format));
  return kOk;
}

Result<int> parted_generate(const PartedFlags& flags, Context& context) {
  GANTRY_TRY(const auto view, view_of_machine(flags, context));
  GANTRY_TRY(const auto config, mig::generate_config(view.gpus));
  const auto text = as_format(config, flags.format);
  if (flags.output.empty()) {
    fmt::print(context.out, "{}", text);
    return kOk;
  }
  GANTRY_CHECK(sys::replace_file(flags.output, text));
  return kOk;
}

Result<int> parted_checkpoint(const PartedFlags& flags, Context& context) {
  GANTRY_CHECK(need_file(flags, "checkpoint-file"));
  GANTRY_TRY(const auto view, view_of_machine(flags, context));
  GANTRY_CHECK(sys::replace_file(flags.file, mig::write_checkpoint(view.gpus)));
  fmt::print(context.out, "MIG configuration checkpointed successfully\n");
  return kOk;
}

using PartedWork = Result<int> (*)(const PartedFlags& flags, Context& context);

CLI::App* add_parted(CLI::App& app, const char* name, const char* what, Action& chosen,
                     const std::shared_ptr<PartedFlags>& flags, PartedWork work,
                     const bool& debug) {
  auto* command = app.add_subcommand(name, what);
  command->callback([=, &chosen, &debug] {
    flags->debug = debug;
    chosen = [=](Context& context) { return work(*flags, context); };
  });
  return command;
}

void add_file_flag(CLI::App& command, PartedFlags& flags, bool checkpoint) {
  command
      .add_option(checkpoint ? "-f,--checkpoint-file" : "-f,--config-file", flags.file,
                  checkpoint ? "Path to the checkpoint file"
                             : "Path to the configuration file; - reads standard input")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->envname(checkpoint ? "MIG_PARTED_CHECKPOINT_FILE" : "MIG_PARTED_CONFIG_FILE");
}

void add_selection(CLI::App& command, PartedFlags& flags) {
  command.add_option("-c,--selected-config", flags.set, "Name of the configuration in the file")
      ->type_name("NAME")
      ->envname("MIG_PARTED_SELECTED_CONFIG");
}

void add_mode_only(CLI::App& command, PartedFlags& flags) {
  command.add_flag("-m,--mode-only", flags.mode_only, "Only the MIG mode, not the instances")
      ->envname("MIG_PARTED_MODE_CHANGE_ONLY");
}

void add_hooks_file(CLI::App& command, PartedFlags& flags) {
  command
      .add_option("-k,--hooks-file", flags.hooks,
                  "Commands to run before and after; only root may be able to change the file")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->envname("MIG_PARTED_HOOKS_FILE");
}

void add_format(CLI::App& command, PartedFlags& flags) {
  command.add_option("-o,--output-format", flags.format, "json or yaml")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json"}).description(""))
      ->envname("MIG_PARTED_OUTPUT_FORMAT");
}

void add_parted_commands(CLI::App& app, Action& chosen, const bool& debug) {
  const auto fresh = [] { return std::make_shared<PartedFlags>(); };
  auto flags = fresh();
  auto* command = add_parted(app, "apply", "Apply a configuration, with its hooks", chosen, flags,
                             parted_apply, debug);
  add_file_flag(*command, *flags, false);
  add_selection(*command, *flags);
  add_hooks_file(*command, *flags);
  add_mode_only(*command, *flags);
  command->add_flag("-s,--skip-reset", flags->skip_reset, "Do not reset GPUs whose mode needs it")
      ->envname("MIG_PARTED_SKIP_RESET");
  flags = fresh();
  command = add_parted(app, "assert", "Assert that a configuration is applied", chosen, flags,
                       parted_assert, debug);
  add_file_flag(*command, *flags, false);
  add_selection(*command, *flags);
  add_mode_only(*command, *flags);
  command->add_flag("-a,--valid-config", flags->valid_only, "Only that the file has it")
      ->envname("MIG_PARTED_VALID_CONFIG");
  flags = fresh();
  command = add_parted(app, "export", "Print the present state as a configuration", chosen, flags,
                       parted_export, debug);
  add_format(*command, *flags);
  command->add_option("-l,--config-label", flags->label, "Name of the configuration")
      ->type_name("NAME")
      ->envname("MIG_PARTED_CONFIG_LABEL");
  flags = fresh();
  command = add_parted(app, "generate-config", "Print configurations that these GPUs can have",
                       chosen, flags, parted_generate, debug);
  add_format(*command, *flags);
  command->add_option("-f,--output-file", flags->output, "Write to this file")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->envname("MIG_PARTED_OUTPUT_FILE");
  flags = fresh();
  command = add_parted(app, "checkpoint", "Save mode and instances to a file", chosen, flags,
                       parted_checkpoint, debug);
  add_file_flag(*command, *flags, true);
  flags = fresh();
  command = add_parted(app, "restore", "Create again what a checkpoint has", chosen, flags,
                       parted_restore, debug);
  add_file_flag(*command, *flags, true);
  add_hooks_file(*command, *flags);
  add_mode_only(*command, *flags);
}

}  // namespace

int nvidia_mig_parted(int argc, char** argv, std::FILE* out, std::FILE* err) {
  Context context = context_of_process(out, err);
  CLI::App app("NVIDIA's mig-parted, answered by gantry.", "nvidia-mig-parted");
  app.fallthrough();
  bool debug = false;
  app.add_flag("-d,--debug", debug, "Show the output of hooks")->envname("MIG_PARTED_DEBUG");
  app.set_version_flag("-v,--version", "nvidia-mig-parted (answered by gantry " GANTRY_VERSION ")");
  app.footer(
      "Examples:\n"
      "  nvidia-mig-parted apply -f config.yaml -c all-balanced\n"
      "  nvidia-mig-parted assert -f config.yaml -c all-balanced\n"
      "  nvidia-mig-parted export\n"
      "gantry mig --help has more commands.\n");
  Action chosen;
  add_parted_commands(app, chosen, debug);
  return run_program(app, argc, argv, context, chosen);
}

}  // namespace gantry::cli
