// SPDX-License-Identifier: Apache-2.0
// The machine's driver as text for the simulated kernel module (sim/kernel/description.c).
#include "base/core/text.hpp"
#include "sim/machine/boot_internal.hpp"
#include "sim/machine/image.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

// One "key line" for each line of a file.
std::string keyed_lines(std::string_view key, std::string_view file) {
  std::string text;
  for (const auto line : lines(file)) text += fmt::format("{} {}\n", key, line);
  return text;
}

std::string gpu_lines(const Driver& driver, const Gpu& gpu, const model::PciAddress& address) {
  auto text =
      fmt::format("gpu {}\nminor {}\nmodel {}\nuuid {}\nvbios {}\ndma_bits {}\n", address.sysfs(),
                  gpu.minor, gpu.name, gpu.uuid, to_lower(gpu.vbios), gpu.pci.dma_bits);
  if (driver_major(driver.module_version) >= 470)  // older ones do not have this line
    text += fmt::format("firmware {}\n", gpu.gsp ? driver.module_version : "N/A");
  text += fmt::format("memory_mib {}\nexcluded {}\n", gpu.memory_total_mib, gpu.excluded ? 1 : 0);
  for (const auto& type : gpu.vgpu_types)
    text += fmt::format("vgpu {} {} {}\n", type.id, type.memory_mib, type.name);
  return text;
}

// A function that another driver has from the start, such as vfio-pci.
std::string override_line(const PciFunction& function, const BootAddresses& addresses) {
  const auto found = addresses.find(function.address);
  if (found == addresses.end() || !function.driver.starts_with("vfio")) return "";
  return fmt::format("override {} {}\n", found->second.sysfs(), function.driver);
}

}  // namespace

std::string boot_description(const Machine& machine, const BootAddresses& addresses) {
  std::string text;
  if (driver_loaded(machine)) {
    text += fmt::format("driver {}\n", machine.driver.module_version);
    text += keyed_lines("version", driver_version_text(machine.driver));
    text += keyed_lines("param", driver_params_text(machine));
  }
  for (const auto& gpu : machine.gpus) text += override_line(gpu.pci, addresses);
  for (const auto& function : machine.pci) text += override_line(function, addresses);
  for (const auto& gpu : machine.gpus)
    text += gpu_lines(machine.driver, gpu, addresses.at(gpu.pci.address));
  return text;
}

std::string boot_modules(const Machine& machine) {
  if (!driver_loaded(machine)) return "";
  std::string text = "nvidia";
  for (const auto* name : {"nvidia_uvm", "nvidia_modeset", "nvidia_vgpu_vfio"}) {
    for (const auto& module : machine.driver.modules) {
      if (module.name != name) continue;
      text += ' ';
      for (const char c : module.name) text += c == '_' ? '-' : c;
    }
  }
  return text;
}

}  // namespace gantry::sim
