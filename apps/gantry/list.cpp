// SPDX-License-Identifier: Apache-2.0
// gantry list: the driver's files and device nodes, and why each was chosen.
#include "base/core/printable.hpp"
#include "gantry/commands.hpp"
#include "gantry/format_values.hpp"
#include "gantry/table.hpp"
#include "gantry/terminal.hpp"
#include "gpu/model/inventory_json.hpp"
#include "gpu/probe/snapshot.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

std::string node_table(const model::Inventory& machine, std::size_t width) {
  Table table({"NODE", "MAJOR:MINOR", "MODE", "OWNER", "WHY"});
  for (const auto& node : machine.nodes) {
    table.add({node.path, fmt::format("{}:{}", node.major, node.minor),
               fmt::format("{:04o}", node.mode), fmt::format("{}:{}", node.uid, node.gid),
               node.why});
  }
  return table.empty() ? "No device nodes.\n" : table.text(width);
}

std::string file_table(const model::Inventory& machine, std::size_t width) {
  Table table({"FILE", "KIND", "CAPABILITIES", "WHY"});
  for (const auto& file : machine.files) {
    table.add({file.path, format_file_kind(file.kind), format_capabilities(file), file.why});
  }
  return table.empty() ? "No driver files.\n" : table.text(width);
}

Result<int> list_gpus(const Deadline& deadline, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  probe::SnapshotOptions how;
  how.deadline = deadline.duration();
  GANTRY_TRY(const auto machine,
             while_waiting(context, [&] { return probe::snapshot(host, how); }));
  if (context.json) {
    fmt::print(context.out, "{}",
               model::to_json_part(machine, {"generation", "driver", "nodes", "files"}));
  } else {
    fmt::print(context.out, "{}\n{}", printable_lines(node_table(machine, context.columns)),
               printable_lines(file_table(machine, context.columns)));
  }
  if (!machine.files.empty() && !machine.nodes.empty()) return kOk;
  point_to_doctor(context);
  return kProblem;
}

}  // namespace

void add_list(CLI::App& app, Context& context, Action& chosen) {
  auto* command =
      app.add_subcommand("list", "Driver files and device nodes, and why each was chosen");
  const auto deadline = std::make_shared<Deadline>();
  add_machine_options(*command, context);
  add_deadline(*command, *deadline);
  add_examples(*command,
               "  gantry list\n"
               "  gantry list --json | jq -r '.files[] | select(.kind == \"library\") | .path'\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return list_gpus(*deadline, c); }; });
}

}  // namespace gantry::cli
