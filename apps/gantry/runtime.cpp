// SPDX-License-Identifier: Apache-2.0
// gantry runtime configure: adds the nvidia runtime to the configuration of docker, containerd,
// CRI-O or podman, and removes it again. Also available as `nvidia-ctk runtime configure`, with
// NVIDIA's flags.
#include "base/sys/child.hpp"
#include "base/sys/shell_command.hpp"
#include "container/engines/check.hpp"
#include "container/engines/diff.hpp"
#include "container/engines/journal.hpp"
#include "gantry/commands.hpp"
#include "gantry/nvidia_ctk.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace gantry::cli {
namespace {

enum class ConfigureName : std::uint8_t { Gantry, NvidiaCtk };

struct ConfigureOptions {
  engines::EngineOptions engine;
  std::string runtime = "docker";
  std::string distribution = "auto";
  std::string source = "file";
  std::string mode = "config-file";
  std::string drop_in;
  bool drop_in_given = false;
  bool dry_run = false;
  bool undo = false;
  bool restart = false;
  ConfigureName called_as = ConfigureName::Gantry;
};

constexpr std::chrono::seconds kAskDeadline{20};
constexpr std::chrono::seconds kRestartDeadline{120};

Result<std::string> run_program_of_engine(const std::vector<std::string>& words) {
  GANTRY_TRY(auto result, sys::run_command(words, kAskDeadline));
  if (result.status == 127) {
    return Error(Errc::NotFound, fmt::format("{} is not installed", words[0]));
  }
  if (result.status != 0) {
    return Error(Errc::Invalid, fmt::format("{}: {}", fmt::join(words, " "), result.output));
  }
  return std::move(result.output);
}

Result<engines::EngineOptions> engine_options(const ConfigureOptions& options,
                                              const sys::Host& host) {
  auto result = options.engine;
  const bool ctk = options.called_as == ConfigureName::NvidiaCtk;
  const bool hook = options.mode == "oci-hook" || options.mode == "hook";
  // NVIDIA's program writes the hook's file without a look at the engine.
  const auto name = ctk && hook && options.runtime != "crio" ? "podman" : options.runtime;
  auto engine = engines::parse_engine(name);
  if (!engine.ok() && ctk)
    return std::move(engine).error().in(fmt::format("unrecognized runtime '{}'", options.runtime));
  GANTRY_TRY(result.engine, std::move(engine));
  result.sort_keys = ctk;
  GANTRY_TRY(result.distribution, engines::parse_distribution(options.distribution));
  // Instructions that use nvidia-ctk mean /etc/containerd; they name a distribution's file
  // explicitly.
  if (ctk && options.distribution == "auto" && result.config.empty()) {
    result.distribution = engines::Distribution::Plain;
  }
  result.mode = hook ? engines::IntegrationMode::Hook : engines::IntegrationMode::Runtime;
  result.query_engine = options.source == "command";
  if (options.drop_in_given) result.drop_in = options.drop_in;
  // The programs of another tree must not be run; those of a machine seen from a pod cannot be.
  if (host.is_live()) result.run = run_program_of_engine;
  return result;
}

void print_dry_run(const engines::ChangePlan& plan, ConfigureName called_as,
                   const Context& context) {
  for (const auto& file : plan.files) {
    if (!file.changes() && called_as == ConfigureName::Gantry) continue;
    if (called_as == ConfigureName::NvidiaCtk) {
      fmt::print(context.err, "Would write {}:\n", file.path);
      fmt::print(context.out, "{}", file.after);
    } else {
      fmt::print(context.out, "{}",
                 engines::unified_diff(file.path, file.before.value_or(""), file.after));
    }
  }
}

void say(const Context& context, ConfigureName called_as, std::string_view text) {
  if (context.quiet) return;
  fmt::print(called_as == ConfigureName::Gantry ? context.out : context.err, "{}\n", text);
}

void print_outcome(const engines::JournalResult& outcome, ConfigureName called_as,
                   const Context& context) {
  for (const auto& text : outcome.files) say(context, called_as, text);
  for (const auto& text : outcome.notes) print_note(text, context);
}

Result<int> restart(const engines::ChangePlan& plan, const ConfigureOptions& options,
                    const sys::Host& host, const Context& context) {
  if (plan.restart.empty()) return kOk;
  const auto command = fmt::format("{}", fmt::join(plan.restart, " "));
  if (!options.restart) {
    say(context, options.called_as, "To apply it: " + sys::on_machine(host, "sudo " + command));
    return kOk;
  }
  if (!host.is_live()) {
    return Error(
        Errc::Unsupported,
        fmt::format("{} does not run on this machine; on the machine where it does, run: {}",
                    to_string(plan.engine), command));
  }
  GANTRY_TRY(const auto result, sys::run_command(plan.restart, kRestartDeadline));
  if (result.status != 0) {
    return Error(Errc::Internal,
                 fmt::format("{} ended with {}: {}", command, result.status, result.output));
  }
  say(context, options.called_as, fmt::format("Done: {}", command));
  return kOk;
}

Result<int> take_back(const ConfigureOptions& options, const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto wanted, engine_options(options, host));
  const auto files = engines::disk_file_writer();
  GANTRY_TRY(const auto outcome, engines::undo(host, wanted.engine, *files));
  print_outcome(outcome, options.called_as, context);
  const auto plan = engines::make_plan(host, wanted);  // only for how to restart
  return plan.ok() ? restart(*plan, options, host, context) : Result<int>(kOk);
}

// A configuration that the engine's own program rejects is undone at once.
Status check_change(const engines::ChangePlan& plan, const engines::EngineOptions& wanted,
                    const sys::Host& host, engines::FileWriter& files,
                    const ConfigureOptions& options, const Context& context) {
  const auto result = engines::check(plan, wanted.run);
  switch (result.verdict) {
    case engines::ConfigCheck::Verdict::Passed:
      say(context, options.called_as, fmt::format("Checked: {}", result.text));
      return {};
    case engines::ConfigCheck::Verdict::NotAsked:
      say(context, options.called_as, fmt::format("Not checked: {}", result.text));
      return {};
    case engines::ConfigCheck::Verdict::Failed: break;
  }
  GANTRY_TRY([[maybe_unused]] const auto outcome, engines::undo(host, plan.engine, files));
  return Error(Errc::Invalid, fmt::format("{} rejects the new configuration, so it was undone: {}",
                                          to_string(plan.engine), result.text));
}

// NVIDIA's program only warns about a mode that it does not know.
Status check_mode(const ConfigureOptions& options, const Context& context) {
  for (const auto* known : {"", "config-file", "config", "oci-hook", "hook"}) {
    if (options.mode == known) return {};
  }
  if (options.called_as == ConfigureName::Gantry) {
    return Error(Errc::Invalid, fmt::format("there is no --config-mode `{}`; known: config-file, "
                                            "oci-hook",
                                            options.mode));
  }
  print_note(
      fmt::format("--config-mode={} is unknown; the configuration file is changed", options.mode),
      context);
  return {};
}

// NVIDIA's program prints the hook's file if no path is given.
bool only_prints(const ConfigureOptions& options, const engines::EngineOptions& wanted) {
  const bool hook = wanted.mode == engines::IntegrationMode::Hook;
  const bool ctk = options.called_as == ConfigureName::NvidiaCtk;
  return options.dry_run || (ctk && hook && !options.drop_in_given);
}

Result<int> configure(const ConfigureOptions& options, const Context& context) {
  GANTRY_CHECK(check_mode(options, context));
  if (options.undo) return take_back(options, context);
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto wanted, engine_options(options, host));
  GANTRY_TRY(const auto plan, engines::make_plan(host, wanted));
  for (const auto& note : plan.notes) {
    if (!context.quiet) print_note(note, context);
  }
  if (only_prints(options, wanted)) {
    print_dry_run(plan, options.called_as, context);
    return kOk;
  }
  const auto files = engines::disk_file_writer();
  GANTRY_TRY(const auto outcome, engines::apply(host, plan, *files));
  if (outcome.files.empty()) {
    say(context, options.called_as,
        fmt::format("{} is already configured; nothing to change", to_string(plan.engine)));
    return plan.files.empty() ? restart(plan, options, host, context) : Result<int>(kOk);
  }
  print_outcome(outcome, options.called_as, context);
  GANTRY_CHECK(check_change(plan, wanted, host, *files, options, context));
  if (options.called_as == ConfigureName::Gantry) {
    fmt::print(context.out, "To undo this: sudo gantry runtime configure{} --runtime={} --undo\n",
               sys::root_flag(host), to_string(plan.engine));
  }
  return restart(plan, options, host, context);
}

void add_common_flags(CLI::App& command, ConfigureOptions& options) {
  auto& engine = options.engine;
  command.add_option("--runtime", options.runtime, "docker, containerd, crio or podman")
      ->type_name("ENGINE")
      ->capture_default_str();
  command
      .add_option("--config", engine.config,
                  "The engine's configuration file (default: the engine's own)")
      ->type_name("FILE")
      ->transform(absolute_path());
  command
      .add_option("--drop-in-config", options.drop_in,
                  "The drop-in to write; \"\" changes the main file instead")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->each([&options](const std::string&) { options.drop_in_given = true; });
  command
      .add_option("--config-source", options.source,
                  "Where to read the configuration: file, or command (ask the engine)")
      ->check(CLI::IsMember({"file", "command"}))
      ->capture_default_str();
  command.add_option("--executable-path", engine.executable, "The engine's program")
      ->type_name("FILE");
  command.add_option("--config-mode", options.mode, "config-file, or oci-hook (crio, podman)")
      ->type_name("MODE")
      ->capture_default_str();
  command.add_option("--oci-hook-path", options.drop_in, "With oci-hook: the file in hooks.d")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->each([&options](const std::string&) { options.drop_in_given = true; });
  command.add_option("--nvidia-runtime-name", engine.runtime_name, "The runtime's name")
      ->capture_default_str();
  command
      .add_option("--nvidia-runtime-path,--runtime-path", engine.runtime_path,
                  "The runtime's program")
      ->type_name("FILE");
  command.add_option("--nvidia-runtime-hook-path", engine.hook_path, "The hook's program")
      ->type_name("FILE");
  command.add_flag("--nvidia-set-as-default,--set-as-default", engine.set_as_default,
                   "Make it the engine's default runtime");
  command.add_flag("--cdi.enabled,--cdi.enable,--enable-cdi", engine.enable_cdi,
                   "Enable CDI in the engine");
  command.add_flag("--dry-run", options.dry_run, "Show what would be written without writing it");
}

CLI::App* add_configure(CLI::App& app, Action& chosen,
                        const std::shared_ptr<ConfigureOptions>& options) {
  auto* runtime =
      app.add_subcommand("runtime", "Configure container engines for the nvidia runtime");
  runtime->require_subcommand(1);
  auto* command = runtime->add_subcommand(
      "configure", "Add the nvidia runtime to an engine's configuration, or undo that");
  add_common_flags(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](Context& ctx) { return configure(*options, ctx); };
  });
  return command;
}

}  // namespace

void add_runtime(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<ConfigureOptions>();
  auto* command = add_configure(app, chosen, options);
  command->get_option("--runtime")->required();
  command
      ->add_option("--root", context.root,
                   "Configure the machine below this directory (environment: GANTRY_ROOT)")
      ->type_name("DIR")
      ->transform(absolute_path())
      ->capture_default_str();
  command
      ->add_option("--distribution", options->distribution,
                   "Distribution of containerd: auto, plain, k3s, rke2, microk8s, k0s")
      ->capture_default_str();
  command->add_flag("--pass-cdi-annotations", options->engine.pass_cdi_annotations,
                    "containerd: pass annotations that name CDI devices to the runtime");
  command->add_flag("--undo", options->undo, "Restore the previous configuration byte for byte");
  command->add_flag("--restart", options->restart, "Restart the engine afterwards");
  add_examples(*command,
               "  sudo gantry runtime configure --runtime=docker --restart\n"
               "  gantry runtime configure --runtime=containerd --set-as-default --dry-run\n"
               "  sudo gantry runtime configure --runtime=podman --config-mode=oci-hook\n"
               "  sudo gantry runtime configure --runtime=docker --undo");
}

void add_ctk_runtime(CLI::App& app, Context& /*context*/, Action& chosen) {
  auto options = std::make_shared<ConfigureOptions>();
  options->called_as = ConfigureName::NvidiaCtk;
  add_configure(app, chosen, options);
}

}  // namespace gantry::cli
