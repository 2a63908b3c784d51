// SPDX-License-Identifier: Apache-2.0
// /dev: nodes with the numbers that /proc/devices and the driver's minors give.
#include "base/core/text.hpp"
#include "sim/machine/topology.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kControlMinor = 255;
constexpr std::uint32_t kModesetMinor = 254;

class NodeWriter {
 public:
  NodeWriter(TreeWriter& out, const Machine& machine) : out_(out), options_(machine.nodes) {}

  void add(const std::string& path, DeviceNumbers numbers) { add(path, numbers, options_.mode); }
  void add(const std::string& path, DeviceNumbers numbers, unsigned mode) {
    const bool missing =
        std::any_of(options_.missing.begin(), options_.missing.end(),
                    [&](const auto& pattern) { return glob_match(pattern, path); });
    if (!missing) out_.device(path, numbers, mode, options_.uid, options_.gid);
  }

 private:
  TreeWriter& out_;
  const NodeOptions& options_;
};

bool has_module(const Machine& m, std::string_view name) {
  return std::any_of(m.driver.modules.begin(), m.driver.modules.end(),
                     [&](const auto& module) { return module.name == name; });
}

void write_driver_nodes(NodeWriter& nodes, const Machine& m) {
  const Driver& d = m.driver;
  for (const auto& gpu : m.gpus) {
    if (gpu.pci.driver == "nvidia")
      nodes.add(fmt::format("/dev/nvidia{}", gpu.minor), {d.nvidia_major, gpu.minor});
  }
  nodes.add("/dev/nvidiactl", {d.nvidia_major, kControlMinor});
  if (has_module(m, "nvidia_modeset"))
    nodes.add("/dev/nvidia-modeset", {d.nvidia_major, kModesetMinor});
  if (has_module(m, "nvidia_uvm") && d.uvm_major != 0) {
    nodes.add("/dev/nvidia-uvm", {d.uvm_major, 0});
    nodes.add("/dev/nvidia-uvm-tools", {d.uvm_major, 1});
  }
  if (d.caps_major != 0) {
    nodes.add("/dev/nvidia-caps/nvidia-cap1", {d.caps_major, 1}, 0400);
    nodes.add("/dev/nvidia-caps/nvidia-cap2", {d.caps_major, 2}, 0444);
  }
  std::uint32_t index = 0;
  for (const auto& function : m.pci) {
    if (function.vendor == 0x10de && function.class_code >> 8U == 0x0680U) {
      nodes.add(fmt::format("/dev/nvidia-nvswitch{}", index), {d.nvswitch_major, index});
      ++index;
    }
  }
  if (index > 0) nodes.add("/dev/nvidia-nvswitchctl", {d.nvswitch_major, kControlMinor});
}

}  // namespace

void write_nodes(TreeWriter& out, const Machine& m) {
  out.directory("/dev/shm");
  NodeWriter nodes(out, m);
  if (driver_loaded(m)) write_driver_nodes(nodes, m);
  for (const auto& node : m.nodes.others) {
    nodes.add(node.path, {node.major, node.minor}, node.mode);
  }
  bool vfio = false;
  for (const auto* function : pci_functions(m)) {
    if (function->driver != "vfio-pci" || !function->iommu_group) continue;
    out.device(fmt::format("/dev/vfio/{}", *function->iommu_group), {511, *function->iommu_group},
               0600, 0, 0);
    vfio = true;
  }
  if (vfio) out.device("/dev/vfio/vfio", {10, 196}, 0666, 0, 0);
}

}  // namespace gantry::sim
