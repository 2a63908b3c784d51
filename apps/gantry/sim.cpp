// SPDX-License-Identifier: Apache-2.0
// gantry sim: simulated machines with GPUs, for tests and trials.
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

struct RunOptions {
  std::vector<std::string> command;
};

Result<int> create(const CreateOptions& options, Context& context) {
  GANTRY_TRY(const auto machine, sim::load_machine(options.machine));
  GANTRY_TRY(const auto libraries, sim::find_libraries(options.libraries));
  GANTRY_TRY(const auto created,
             sim::create(machine, {.root = context.root,
                                   .libraries = libraries,
                                   .nodes = options.nodes,
                                   .existing = options.force ? sim::ExistingTree::ReplaceOurs
                                                             : sim::ExistingTree::Keep}));
  for (const auto& note : created.notes) fmt::print(context.err, "Note: {}\n", note);
  const bool real = created.nodes == sim::DeviceNodes::Real;
  if (context.json) {
    fmt::print(context.out,
               "{{\"machine\": \"{}\", \"root\": {}, \"gpus\": {}, \"nodes\": \"{}\"}}\n",
               machine.name, json_text(created.root), machine.gpus.size(), real ? "real" : "table");
    return kOk;
  }
  fmt::print(context.out, "Created {} in {}: {} GPU{}, {}.\n", machine.name, created.root,
             machine.gpus.size(), machine.gpus.size() == 1 ? "" : "s",
             real ? "real device nodes" : "device nodes as a table (dev.table)");
  fmt::print(context.out,
             "Try: gantry info --root {0}\n     gantry sim run --root {0} -- nvidia-smi\n",
             created.root);
  return kOk;
}

Result<int> list(Context& context) {
  if (context.json) {
    std::string rows;
    for (const auto& entry : sim::machine_catalog()) {
      rows += fmt::format("{}\n  {{\"name\": {}, \"description\": {}}}", rows.empty() ? "" : ",",
                          json_text(entry.name), json_text(entry.description));
    }
    fmt::print(context.out, "[{}\n]\n", rows);
    return kOk;
  }
  Table table({"MACHINE", "DESCRIPTION"});
  for (const auto& entry : sim::machine_catalog()) table.add({entry.name, entry.description});
  fmt::print(context.out, "{}", table.text());
  return kOk;
}

std::string with_front(const char* variable, const std::string& value) {
  const char* old = std::getenv(variable);
  return old != nullptr && *old != '\0' ? fmt::format("{}:{}", value, old) : value;
}

std::string directory_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

Result<int> run(const RunOptions& options, Context& context) {
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
  command->callback([=, &chosen] { chosen = [=](Context& c) { return create(*options, c); }; });
}

void add_list_and_show(CLI::App& sim, Context& context, Action& chosen) {
  auto* list_command = sim.add_subcommand("list", "List the machines that come with gantry");
  list_command->add_flag("--json", context.json, "Print JSON");
  list_command->callback([&chosen] { chosen = [](Context& c) { return list(c); }; });

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
  auto options = std::make_shared<RunOptions>();
  auto* command = sim.add_subcommand("run", "Run a command with the simulated driver");
  add_root(*command, context);
  command->add_option("command", options->command, "The command and its arguments")
      ->type_name("COMMAND...")
      ->required();
  command->prefix_command(false);
  add_examples(*command,
               "  gantry sim run --root /tmp/machine -- nvidia-smi -L\n"
               "  gantry sim run --root /tmp/machine -- gantry-vector-add\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return run(*options, c); }; });
}

}  // namespace

Status use_simulated_machine(const sys::Host& host) {
  const auto marker = sim::read_marker(host.root());
  if (!marker.ok()) return {};
  const auto nvml = host.outside(directory_of(marker->nvml_library));
  const auto cuda = host.outside(directory_of(marker->cuda_library));
  const auto libraries = nvml == cuda ? nvml : nvml + ":" + cuda;
  ::setenv("LD_LIBRARY_PATH", with_front("LD_LIBRARY_PATH", libraries).c_str(), 1);
  ::setenv("PATH", with_front("PATH", host.outside(marker->binary_directory)).c_str(), 1);
  ::setenv("GANTRY_ROOT", host.root().c_str(), 1);
  return {};
}

void add_root(CLI::App& command, Context& context) {
  command
      .add_option("--root", context.root,
                  "Directory of the simulated machine (environment: GANTRY_ROOT)")
      ->type_name("DIR")
      ->required(std::getenv("GANTRY_ROOT") == nullptr);
}

void reject_choice(const std::string& option, const std::string& word, const std::string& known) {
  throw CLI::ValidationError(option, fmt::format("\"{}\" is not one of {}", word, known));
}

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

void add_sim(CLI::App& app, Context& context, Action& chosen) {
  auto* sim = app.add_subcommand("sim", "Simulated machines with GPUs, for tests and trials");
  sim->require_subcommand(1);
  add_list_and_show(*sim, context, chosen);
  add_create(*sim, context, chosen);
  add_run(*sim, context, chosen);
  add_sim_inject(*sim, context, chosen);
}

}  // namespace gantry::cli
