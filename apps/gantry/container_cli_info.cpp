// SPDX-License-Identifier: Apache-2.0
#include "gantry/container_cli.hpp"

#include <fmt/format.h>

namespace gantry::cli {
namespace {

std::string architecture(const model::Gpu& gpu) {
  if (!gpu.compute_capability) return "unknown";
  return fmt::format("{}.{}", gpu.compute_capability->major, gpu.compute_capability->minor);
}

std::string minor_number(const model::Gpu& gpu) {
  return gpu.minor ? fmt::to_string(*gpu.minor) : std::string("unknown");
}

}  // namespace

std::string container_info_text(const model::Inventory& machine) {
  auto row = [](const char* label, const std::string& value) {
    return fmt::format("{:<15} {}\n", label, value);
  };
  auto text = row("NVRM version:", machine.driver.version) +
              row("CUDA version:", machine.driver.cuda_version);
  for (const auto& gpu : machine.gpus) {
    text += "\n" + row("Device Index:", fmt::to_string(gpu.index)) +
            row("Device Minor:", minor_number(gpu)) + row("Model:", gpu.name) +
            row("Brand:", gpu.brand) + row("GPU UUID:", gpu.uuid.text) +
            row("Bus Location:", gpu.pci.nvml()) + row("Architecture:", architecture(gpu));
  }
  return text;
}

std::string container_info_csv(const model::Inventory& machine) {
  auto text = fmt::format("NVRM version,CUDA version\n{},{}\n\n", machine.driver.version,
                          machine.driver.cuda_version);
  text += "Device Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture\n";
  for (const auto& gpu : machine.gpus) {
    text += fmt::format("{},{},{},{},{},{},{}\n", gpu.index, minor_number(gpu), gpu.name, gpu.brand,
                        gpu.uuid.text, gpu.pci.nvml(), architecture(gpu));
  }
  return text;
}

}  // namespace gantry::cli
