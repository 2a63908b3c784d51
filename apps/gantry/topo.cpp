// SPDX-License-Identifier: Apache-2.0
// gantry topo: shows how the GPUs are connected.
#include "base/core/printable.hpp"
#include "base/sys/shell_command.hpp"
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

constexpr const char* kLegend =
    "\n"
    "X self · NV# number of NVLinks · PSB same board · PIX one PCIe switch · PXB several · PHB "
    "host bridge\n"
    "NODE same NUMA node · SYS across NUMA nodes · - unknown\n";

std::string matrix(const model::Inventory& machine, std::size_t width) {
  std::vector<std::string> header = {""};
  for (const auto& gpu : machine.gpus) header.push_back(fmt::format("GPU{}", gpu.index));
  header.insert(header.end(), {"CPUS", "NUMA"});
  Table table(header);
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    std::vector<std::string> row = {header[i + 1]};
    for (const auto& link : machine.links[i]) row.push_back(format_link(link));
    row.push_back(machine.gpus[i].cpu_list.empty() ? "-" : machine.gpus[i].cpu_list);
    row.push_back(format_numa(machine.gpus[i].numa_node));
    table.add(row);
  }
  return table.text(width);
}

struct SwitchSummary {
  int pairs = 0;           // through NVSwitch
  bool every_pair = true;  // all of them, with the same number of NVLinks
};

SwitchSummary switched(const model::Inventory& machine) {
  SwitchSummary found;
  const model::Link* first = nullptr;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    for (std::size_t j = i + 1; j < machine.links[i].size(); ++j) {
      const auto& link = machine.links[i][j];
      if (link.nvswitch) ++found.pairs;
      if (first == nullptr) first = &link;
      if (!link.nvswitch || link.nvlinks != first->nvlinks) found.every_pair = false;
    }
  }
  return found;
}

std::string about_nvswitch(const model::Inventory& machine) {
  const auto found = switched(machine);
  if (found.pairs == 0) return "";
  return found.every_pair
             ? "NVLinks go through NVSwitch: every pair can use all of them.\n"
             : "NVLinks go through NVSwitch: every pair that shows NV# can use all of them.\n";
}

std::string about_lost(const model::Inventory& machine) {
  std::string text;
  for (const auto& gpu : machine.gpus) {
    if (gpu.health.state != model::HealthState::Lost) continue;
    text +=
        fmt::format("The NVLinks of GPU{} are unknown: {}\n", gpu.index, format_health(gpu.health));
  }
  return text;
}

Result<int> topo(const Deadline& deadline, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, while_waiting(context, [&] {
               return probe::snapshot(host, {.deadline = deadline.duration()});
             }));
  const auto lost = about_lost(machine);
  if (context.json) {
    fmt::print(context.out, "{}", model::to_json_part(machine, {"generation", "gpus", "links"}));
  } else if (machine.gpus.empty()) {
    fmt::print(context.out, "No GPU.\n");
  } else {
    const auto notes = kLegend + about_nvswitch(machine) + printable_lines(lost);
    fmt::print(context.out, "{}{}", printable_lines(matrix(machine, context.columns)),
               wrap_lines(notes, context.columns));
  }
  if (!machine.gpus.empty() && machine.driver.nvml_error.empty() && lost.empty()) return kOk;
  if (!machine.driver.nvml_error.empty()) {
    fmt::print(context.err, "NVLinks are unknown: {}\n",
               printable_lines(sys::with_root(machine.driver.nvml_error, context.root)));
  }
  point_to_doctor(context);
  return kProblem;
}

}  // namespace

void add_topo(CLI::App& app, Context& context, Action& chosen) {
  auto* command = app.add_subcommand("topo", "Show how the GPUs are connected: NVLink, PCIe, NUMA");
  const auto deadline = std::make_shared<Deadline>();
  add_machine_options(*command, context);
  add_deadline(*command, *deadline);
  add_examples(
      *command,
      "  gantry topo           # a matrix\n"
      "  gantry topo --json    # gpus, and links[i][j]: the connection from gpus[i] to gpus[j]\n"
      "  gantry topo --json | jq '.links[0][1]'\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return topo(*deadline, c); }; });
}

}  // namespace gantry::cli
