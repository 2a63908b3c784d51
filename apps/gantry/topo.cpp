// SPDX-License-Identifier: Apache-2.0
// gantry topo: how the GPUs reach each other.
#include "gantry/commands.hpp"
#include "gantry/table.hpp"
#include "gantry/words.hpp"
#include "model/inventory_json.hpp"
#include "probe/snapshot.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

constexpr const char* kLegend =
    "\nX self · NV# that many NVLinks · PSB same board · PIX one PCIe switch · PXB several · "
    "PHB host bridge\nNODE same NUMA node · SYS across NUMA nodes · - not known\n";

std::string matrix(const model::Inventory& machine) {
  std::vector<std::string> header = {""};
  for (const auto& gpu : machine.gpus) header.push_back(fmt::format("GPU{}", gpu.index));
  header.insert(header.end(), {"CPUS", "NUMA"});
  Table table(header);
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    std::vector<std::string> row = {header[i + 1]};
    for (const auto& link : machine.links[i]) row.push_back(link_word(link));
    row.push_back(machine.gpus[i].cpu_list.empty() ? "-" : machine.gpus[i].cpu_list);
    row.push_back(numa_word(machine.gpus[i].numa_node));
    table.add(row);
  }
  return table.text();
}

bool has_nvswitch(const model::Inventory& machine) {
  for (const auto& row : machine.links) {
    for (const auto& link : row) {
      if (link.nvswitch) return true;
    }
  }
  return false;
}

Result<int> topo(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, probe::snapshot(host, {}));
  if (context.json) {
    fmt::print(context.out, "{}", model::to_json_part(machine, {"generation", "gpus", "links"}));
  } else if (machine.gpus.empty()) {
    fmt::print(context.out, "No GPU.\n");
  } else {
    fmt::print(context.out, "{}{}", matrix(machine), kLegend);
    if (has_nvswitch(machine))
      fmt::print(context.out, "NVLinks go through NVSwitch: any pair has all of them.\n");
  }
  if (!machine.gpus.empty() && machine.driver.nvml_error.empty()) return kOk;
  if (!machine.driver.nvml_error.empty()) {
    fmt::print(context.err, "NVLinks are not known: {}\n", machine.driver.nvml_error);
  }
  fmt::print(context.err, "Run `gantry doctor` for causes and remedies.\n");
  return kProblem;
}

}  // namespace

void add_topo(CLI::App& app, Context& context, Action& chosen) {
  auto* command = app.add_subcommand("topo", "How the GPUs reach each other: NVLink, PCIe, NUMA");
  add_machine_options(*command, context);
  add_examples(*command,
               "  gantry topo           # the matrix\n"
               "  gantry topo --json    # links, one object a pair\n");
  command->callback([&chosen] { chosen = topo; });
}

}  // namespace gantry::cli
