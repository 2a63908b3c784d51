// SPDX-License-Identifier: Apache-2.0
// gantry info: prints the machine's GPUs as a table or as the inventory's JSON.
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
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace gantry::cli {
namespace {

struct InfoOptions {
  bool without_nvml = false;
  bool load = false;
  Deadline deadline;
};

std::string machine_headline(const model::Inventory& machine) {
  const auto& driver = machine.driver;
  const auto count = machine.gpus.size();
  const auto gpus = fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
  if (driver.version.empty()) {
    return fmt::format("{}, NVIDIA driver not loaded\n", count == 0 ? "No GPU" : gpus);
  }
  return fmt::format("{}, NVIDIA driver {} ({}), CUDA {}\n", gpus, driver.version,
                     format_module_flavour(driver.flavour),
                     driver.cuda_version.empty() ? "unknown" : driver.cuda_version);
}

// A reason that several GPUs share (the fabric is down) is printed once, below the table.
using SharedReasons = std::map<std::string, std::vector<int>>;

SharedReasons shared_reasons(const model::Inventory& machine) {
  SharedReasons all;
  for (const auto& gpu : machine.gpus) {
    for (const auto& reason : gpu.health.reasons) all[reason].push_back(gpu.index);
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.size() < 2; });
  return all;
}

model::Health own_health(model::Health health, const SharedReasons& shared) {
  std::erase_if(health.reasons, [&](const auto& reason) { return shared.contains(reason); });
  return health;
}

std::string gpu_table(const model::Inventory& machine, std::size_t width) {
  Table table({"GPU", "NAME", "MEMORY", "BUS", "NUMA", "MIG", "UUID", "HEALTH"});
  const auto shared = shared_reasons(machine);
  for (const auto& gpu : machine.gpus) {
    table.add({fmt::to_string(gpu.index), format_known(gpu.name), format_memory(gpu.memory_bytes),
               gpu.pci.sysfs(), format_numa(gpu.numa_node), format_mig(gpu.mig),
               format_known(gpu.uuid.text), format_health(own_health(gpu.health, shared))});
  }
  auto text = table.empty() ? "" : "\n" + table.text(width);
  for (const auto& [reason, gpus] : shared) {
    text += fmt::format("\nGPU {}: {}\n", fmt::join(gpus, ", "), reason);
  }
  return text;
}

std::string format_watts(const std::optional<int>& milliwatts) {
  return milliwatts ? fmt::format("{:.1f} W", *milliwatts / 1000.0) : std::string("?");
}

std::string load_table(const model::Inventory& machine, std::size_t width) {
  Table table({"GPU", "UTILISATION", "MEMORY USED", "POWER", "LIMIT", "TEMPERATURE"});
  for (const auto& gpu : machine.gpus) {
    const auto& now = gpu.telemetry;
    table.add({fmt::to_string(gpu.index),
               now.utilization_percent ? fmt::format("{} %", *now.utilization_percent) : "?",
               format_memory(now.memory_used_bytes), format_watts(now.power_milliwatts),
               format_watts(now.power_limit_milliwatts),
               now.temperature_celsius ? fmt::format("{} C", *now.temperature_celsius) : "?"});
  }
  return table.empty() ? "" : "\n" + table.text(width);
}

std::string mig_table(const model::Inventory& machine, std::size_t width) {
  Table table({"MIG", "PROFILE", "MEMORY", "UUID"});
  for (const auto& gpu : machine.gpus) {
    for (const auto& mig : gpu.mig.instances) {
      table.add({fmt::format("{}:{}", gpu.index, mig.index), mig.profile,
                 format_memory(mig.memory_bytes), mig.uuid.text});
    }
  }
  return table.empty() ? "" : "\n" + table.text(width);
}

// GPUs that are not bound to the nvidia driver: the usual answer to "where is my card?".
std::string unbound_gpu_table(const model::Inventory& machine, std::size_t width) {
  Table table({"NOT BOUND TO NVIDIA", "ID", "CLASS", "DRIVER", "IOMMU GROUP"});
  for (const auto& function : machine.functions) {
    if (!function.is_gpu() || function.driver == "nvidia") continue;
    table.add({function.address.sysfs(),
               fmt::format("{:04x}:{:04x}", function.vendor, function.device),
               fmt::format("{:06x}", function.class_code),
               function.driver.empty() ? "none" : function.driver,
               function.iommu_group ? fmt::to_string(*function.iommu_group) : "none"});
  }
  return table.empty() ? "" : "\n" + table.text(width);
}

std::string remarks(const model::Inventory& machine, const Context& context) {
  std::string text;
  if (!machine.driver.nvml_error.empty())
    text += fmt::format("NVML: {}{}\n", sys::with_root(machine.driver.nvml_error, context.root),
                        machine.gpus.empty() ? "" : "; \"?\" marks values that only NVML has");
  for (const auto& d : machine.differences) {
    text += fmt::format("Sources disagree on {}: kernel says {}, NVML says {}\n", d.what, d.kernel,
                        d.nvml);
  }
  for (const auto& note : machine.notes) text += sys::with_root(note, context.root) + "\n";
  return text.empty() ? "" : "\n" + text;
}

bool is_well(const model::Inventory& machine) {
  return !machine.gpus.empty() && machine.driver.nvml_error.empty() &&
         std::none_of(machine.gpus.begin(), machine.gpus.end(),
                      [](const auto& gpu) { return gpu.health.state == model::HealthState::Lost; });
}

Result<int> info(const InfoOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  probe::SnapshotOptions how;
  how.deadline = options.deadline.duration();
  how.parts.load = options.load;
  if (options.without_nvml) how.nvml = probe::NvmlUse::Skip;
  GANTRY_TRY(const auto machine,
             while_waiting(context, [&] { return probe::snapshot(host, how); }));
  if (context.json) {
    fmt::print(context.out, "{}", model::to_json(machine));
  } else {
    const auto width = context.columns;
    fmt::print(context.out, "{}",
               printable_lines(machine_headline(machine) + gpu_table(machine, width) +
                               (options.load ? load_table(machine, width) : "") +
                               mig_table(machine, width) + unbound_gpu_table(machine, width) +
                               remarks(machine, context)));
  }
  const bool well = is_well(machine) || (options.without_nvml && !machine.gpus.empty());
  if (!well) point_to_doctor(context);
  return well ? kOk : kProblem;
}

}  // namespace

void add_info(CLI::App& app, Context& context, Action& chosen) {
  auto options = std::make_shared<InfoOptions>();
  auto* command = app.add_subcommand("info", "The GPUs of this machine");
  add_machine_options(*command, context);
  command->add_flag("--no-nvml", options->without_nvml,
                    "Read /proc and /sys only, do not load NVML");
  command->add_flag("--load", options->load,
                    "Also show power draw and utilisation; takes NVML a few milliseconds per GPU");
  add_deadline(*command, options->deadline);
  add_examples(*command,
               "  gantry info                       # a table\n"
               "  gantry info --json | jq .gpus     # for programs; docs/inventory-json.md\n"
               "  gantry info --load                # also utilisation, memory in use and power\n"
               "  gantry info --root /tmp/machine   # a simulated machine, or /host in a pod\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return info(*options, c); }; });
}

}  // namespace gantry::cli
