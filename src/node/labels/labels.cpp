// SPDX-License-Identifier: Apache-2.0
#include "node/labels/labels.hpp"

#include "base/core/text.hpp"
#include "node/labels/model_labels_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gantry::labels {
namespace {

constexpr std::size_t kValueLimit = 63;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void add_driver(const model::Driver& driver, Labels& labels) {
  const auto parts = split(driver.version, '.');
  if (parts.size() == 2 || parts.size() == 3) {
    const std::string revision(parts.size() == 3 ? parts[2] : "");
    labels["nvidia.com/cuda.driver.major"] = parts[0];
    labels["nvidia.com/cuda.driver.minor"] = parts[1];
    labels["nvidia.com/cuda.driver.rev"] = revision;
    labels["nvidia.com/cuda.driver-version.major"] = parts[0];
    labels["nvidia.com/cuda.driver-version.minor"] = parts[1];
    labels["nvidia.com/cuda.driver-version.revision"] = revision;
    labels["nvidia.com/cuda.driver-version.full"] = sanitize(driver.version);
  }
  const auto cuda = split(driver.cuda_version, '.');
  if (cuda.size() != 2) return;
  labels["nvidia.com/cuda.runtime.major"] = cuda[0];
  labels["nvidia.com/cuda.runtime.minor"] = cuda[1];
  labels["nvidia.com/cuda.runtime-version.major"] = cuda[0];
  labels["nvidia.com/cuda.runtime-version.minor"] = cuda[1];
  labels["nvidia.com/cuda.runtime-version.full"] = driver.cuda_version;
}

// The mode from the PCI class of all GPUs.
std::string mode_of(const model::Inventory& inventory) {
  std::string mode;
  for (const auto& gpu : inventory.gpus) {
    std::string one = "unknown";
    for (const auto& function : inventory.functions) {
      if (function.address != gpu.pci) continue;
      if ((function.class_code >> 8U) == 0x0300U) one = "graphics";
      if ((function.class_code >> 8U) == 0x0302U) one = "compute";
    }
    if (mode.empty()) mode = one;
    if (mode != one) return "unknown";
  }
  return mode.empty() ? "unknown" : mode;
}

// "" unless all GPUs that are in a fabric are in the same clique.
std::string clique_of(const model::Inventory& inventory) {
  std::string clique;
  for (const auto& gpu : inventory.gpus) {
    if (gpu.fabric_clique.empty()) continue;
    if (!clique.empty() && clique != gpu.fabric_clique) return "";
    clique = gpu.fabric_clique;
  }
  return clique;
}

void add_machine(const model::Inventory& inventory, const LabelOptions& options, Labels& labels) {
  const auto machine = sanitize(options.machine);
  labels["nvidia.com/gpu.machine"] = machine.empty() ? "unknown" : machine;
  labels["nvidia.com/gpu.mode"] = mode_of(inventory);
  if (auto clique = clique_of(inventory); !clique.empty())
    labels["nvidia.com/gpu.clique"] = sanitize(clique);
  const auto capable = [](const model::Gpu& gpu) {
    return gpu.mig.current == model::MigMode::Enabled ||
           gpu.mig.current == model::MigMode::Disabled;
  };
  const auto divided = [](const model::Gpu& gpu) {
    return gpu.mig.current == model::MigMode::Enabled;
  };
  const auto& gpus = inventory.gpus;
  labels["nvidia.com/mig.capable"] =
      std::any_of(gpus.begin(), gpus.end(), capable) ? "true" : "false";
  if (options.mig != MigStrategy::None)
    labels["nvidia.com/mig.strategy"] = options.mig == MigStrategy::Single ? "single" : "mixed";
  const auto uses_mps = [](const auto& entry) { return entry.second.sharing == SharingKind::Mps; };
  const bool mps = std::any_of(options.shared.begin(), options.shared.end(), uses_mps);
  labels["nvidia.com/mps.capable"] =
      mps && std::none_of(gpus.begin(), gpus.end(), divided) ? "true" : "false";
}

void add_vgpu(const LabelOptions& options, Labels& labels) {
  labels["nvidia.com/vgpu.present"] = options.vgpu ? "true" : "false";
  if (!options.vgpu) return;
  labels["nvidia.com/vgpu.host-driver-version"] = sanitize(options.vgpu->host_driver_version);
  labels["nvidia.com/vgpu.host-driver-branch"] = sanitize(options.vgpu->host_driver_branch);
}

// The parts that labels describe. A GPU that does not answer does not count, as in NVIDIA's
// program: pods that select nodes by these labels would wait for it.
model::Inventory answering_part(const model::Inventory& inventory) {
  model::Inventory part{.driver = inventory.driver, .functions = inventory.functions};
  if (!inventory.driver.nvml_error.empty()) return part;
  std::copy_if(inventory.gpus.begin(), inventory.gpus.end(), std::back_inserter(part.gpus),
               [](const model::Gpu& gpu) { return gpu.health.state != model::HealthState::Lost; });
  return part;
}

}  // namespace

std::string sanitize(std::string_view text) {
  std::string out;
  for (const auto word : split(text, ' ')) {
    std::string kept;
    for (const char c : word) {
      if (is_alphanumeric(c) || c == '-' || c == '_' || c == '.') kept += c;
    }
    if (kept.empty()) continue;
    if (!out.empty()) out += '-';
    out += kept;
  }
  out.resize(std::min(out.size(), kValueLimit));
  while (!out.empty() && !is_alphanumeric(out.back())) out.pop_back();
  const auto begin = std::find_if(out.begin(), out.end(), is_alphanumeric);
  out.erase(out.begin(), begin);
  return out;
}

Labels make_labels(const model::Inventory& machine, const LabelOptions& options) {
  const auto inventory = answering_part(machine);
  Labels labels;
  if (options.timestamp) labels["nvidia.com/gfd.timestamp"] = fmt::to_string(*options.timestamp);
  add_vgpu(options, labels);
  if (inventory.gpus.empty()) return labels;
  add_driver(inventory.driver, labels);
  add_machine(inventory, options, labels);
  const auto models = gpu_models(inventory);
  add_model_labels(models, options, labels);
  if (options.mig == MigStrategy::Single) add_single_mig(inventory, models, options, labels);
  if (options.mig == MigStrategy::Mixed) add_mixed_mig(inventory, options, labels);
  return labels;
}

std::string to_lines(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}={}\n", key, value);
  return text;
}

}  // namespace gantry::labels
