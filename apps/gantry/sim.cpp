// SPDX-License-Identifier: Apache-2.0
// gantry sim: simulated machines with GPUs, for tests and trials.
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/commands.hpp"
#include "gantry/sim_commands.hpp"
#include "gantry/table.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/tree.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

namespace gantry::cli {
namespace {

struct CreateOptions {
  std::string machine;
  std::string libraries;
  sim::DeviceNodes nodes = sim::DeviceNodes::Auto;
  bool force = false;
};

struct SimRunOptions {
  std::vector<std::string> command;
};

Result<int> create_machine(const CreateOptions& options, Context& context) {
  GANTRY_TRY(const auto machine, sim::load_machine(options.machine));
  GANTRY_TRY(const auto libraries, sim::find_libraries(options.libraries));
  GANTRY_TRY(const auto created,
             sim::create(machine, {.root = context.root,
                                   .libraries = libraries,
                                   .nodes = options.nodes,
                                   .existing = options.force ? sim::ExistingTree::ReplaceOurs
                                                             : sim::ExistingTree::Keep}));
  for (const auto& note : created.notes) print_note(note, context);
  const bool real = created.nodes == sim::DeviceNodes::Real;
  if (context.json) {
    json::Writer out(json::Layout::Spaced);
    out.object([&] {
      out.member("schema", kFirstSchema);
      out.member("machine", machine.name);
      out.member("root", created.root);
      out.member("gpus", machine.gpus.size());
      out.member("nodes", real ? "real" : "table");
    });
    fmt::print(context.out, "{}\n", out.text());
    return kOk;
  }
  fmt::print(context.out, "Created {} in {}: {} GPU{}, {}.\n", machine.name, created.root,
             machine.gpus.size(), machine.gpus.size() == 1 ? "" : "s",
             real ? "real device nodes" : "device nodes as a table (dev.table)");
  fmt::print(context.out, "Try: gantry info{0}\n     gantry sim run{0} -- nvidia-smi\n",
             sys::root_flag(created.root));
  return kOk;
}

Result<int> list_machines(Context& context) {
  if (context.json) {
    json::Writer out(json::Layout::Rows);
    out.array(sim::machine_catalog(), [&](const auto& entry) {
      out.object([&] {
        out.member("schema", kFirstSchema);
        out.member("name", entry.name);
        out.member("description", entry.description);
      });
    });
    fmt::print(context.out, "{}\n", out.text());
    return kOk;
  }
  Table table({"MACHINE", "DESCRIPTION"});
  for (const auto& entry : sim::machine_catalog()) table.add({entry.name, entry.description});
  fmt::print(context.out, "{}", table.text(context.columns));
  return kOk;
}

std::string with_front(const char* variable, const std::string& value) {
  const char* old = std::getenv(variable);
  return old != nullptr && *old != '\0' ? fmt::format("{}:{}", value, old) : value;
}

Result<int> run_simulated(const SimRunOptions& options, Context& context) {
  GANTRY_CHECK(sim::read_marker(context.root));  // the error says what is missing
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_CHECK(use_simulated_machine(host));
  std::vector<char*> argv;
  for (const auto& word : options.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::fflush(context.out);
  ::execvp(argv[0], argv.data());
  return Error::sys(errno, fmt::format("run {}", options.command.front()));
}

void add_create(CLI::App& sim, Context& context, Action& chosen) {
  auto options = std::make_shared<CreateOptions>();
  auto* command = sim.add_subcommand("create", "Create a simulated machine in a directory");
  command->add_option("machine", options->machine, "One of `gantry sim list`, or a YAML file")
      ->type_name("MACHINE")
      ->required();
  add_root(*command, context);
  command->add_flag("--json", context.json, "Print JSON");
  command->add_flag("--force", options->force, "Replace an existing simulated machine");
  command
      ->add_option_function<std::string>(
          "--nodes",
          [options](const std::string& word) {
            options->nodes = parse_choice<sim::DeviceNodes>("--nodes", word,
                                                            {{"auto", sim::DeviceNodes::Auto},
                                                             {"real", sim::DeviceNodes::Real},
                                                             {"table", sim::DeviceNodes::Table}});
          },
          "Device nodes: auto (real as root, a table otherwise), real or table")
      ->type_name("KIND");
  command->add_option("--libraries", options->libraries, "Directory of the simulated libraries")
      ->type_name("DIR")
      ->envname("GANTRY_SIM_LIBRARIES");
  add_examples(*command,
               "  gantry sim create h200x8 --root /tmp/machine\n"
               "  gantry sim create ./mine.yaml --root /tmp/mine --nodes table\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return create_machine(*options, c); }; });
}

void add_list_and_show(CLI::App& sim, Context& context, Action& chosen) {
  auto* list_command = sim.add_subcommand("list", "List the machines that come with gantry");
  list_command->add_flag("--json", context.json, "Print JSON");
  list_command->callback([&chosen] { chosen = [](Context& c) { return list_machines(c); }; });

  auto name = std::make_shared<std::string>();
  auto* show = sim.add_subcommand("show", "Print a machine's YAML, to start your own from");
  show->add_option("machine", *name, "One of `gantry sim list`")->type_name("MACHINE")->required();
  add_examples(*show, "  gantry sim show t4x4 > mine.yaml\n");
  show->callback([=, &chosen] {
    chosen = [=](Context& c) -> Result<int> {
      GANTRY_TRY(const auto text, sim::machine_source(*name));
      fmt::print(c.out, "{}", text);
      return kOk;
    };
  });
}

void add_run(CLI::App& sim, Context& context, Action& chosen) {
  auto options = std::make_shared<SimRunOptions>();
  auto* command = sim.add_subcommand("run", "Run a command with the simulated driver");
  add_root(*command, context);
  command->add_option("command", options->command, "The command and its arguments")
      ->type_name("COMMAND...")
      ->required();
  command->prefix_command(false);
  add_examples(*command,
               "  gantry sim run --root /tmp/machine -- nvidia-smi -L\n"
               "  gantry sim run --root /tmp/machine -- gantry-vector-add\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return run_simulated(*options, c); }; });
}

void add_remove(CLI::App& sim, Context& context, Action& chosen) {
  auto* command = sim.add_subcommand("rm", "Remove a simulated machine, and nothing else");
  add_root(*command, context);
  add_examples(*command, "  gantry sim rm --root /tmp/machine\n");
  command->callback([&chosen] {
    chosen = [](Context& c) -> Result<int> {
      GANTRY_CHECK(sim::remove(c.root));
      fmt::print(c.out, "Removed {}.\n", c.root);
      return kOk;
    };
  });
}

}  // namespace

Status use_simulated_machine(const sys::Host& host) {
  const auto marker = sim::read_marker(host.root());
  if (!marker.ok()) return {};
  const auto nvml = host.outside(parent_directory(marker->nvml_library));
  const auto cuda = host.outside(parent_directory(marker->cuda_library));
  const auto libraries = nvml == cuda ? nvml : nvml + ":" + cuda;
  ::setenv("LD_LIBRARY_PATH", with_front("LD_LIBRARY_PATH", libraries).c_str(), 1);
  ::setenv("PATH", with_front("PATH", host.outside(marker->binary_directory)).c_str(), 1);
  // NVIDIA's nvidia-ctk looks for the driver's files and nodes below the last two.
  for (const auto* variable : {"GANTRY_ROOT", "NVIDIA_CTK_DRIVER_ROOT", "NVIDIA_CTK_DEV_ROOT"})
    ::setenv(variable, host.root().c_str(), 1);
  return {};
}

void add_root(CLI::App& command, Context& context) {
  command
      .add_option("--root", context.root,
                  "Directory of the simulated machine (environment: GANTRY_ROOT)")
      ->type_name("DIR")
      ->transform(absolute_path())
      ->required(std::getenv("GANTRY_ROOT") == nullptr);
}

void reject_choice(const std::string& option, const std::string& word, const std::string& known) {
  throw CLI::ValidationError(option, fmt::format("\"{}\" is not one of {}", word, known));
}

void add_sim(CLI::App& app, Context& context, Action& chosen) {
  auto* sim = app.add_subcommand("sim", "Simulated machines with GPUs, for tests and trials");
  sim->require_subcommand(1);
  add_list_and_show(*sim, context, chosen);
  add_create(*sim, context, chosen);
  add_run(*sim, context, chosen);
  add_sim_use(*sim, context, chosen);
  add_sim_boot(*sim, context, chosen);
  add_sim_package(*sim, context, chosen);
  add_remove(*sim, context, chosen);
  add_sim_inject(*sim, context, chosen);
}

}  // namespace gantry::cli
