// SPDX-License-Identifier: Apache-2.0
// A machine written down by hand: two GPUs and one in MIG mode, a driver with one file of each
// kind.
#pragma once

#include "gpu/model/inventory.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace gantry::plan {

inline model::Gpu gpu_for_test(int index) {
  model::Gpu gpu;
  gpu.index = index;
  gpu.uuid = {fmt::format("GPU-0000000{}-aaaa-bbbb-cccc-dddddddddddd", index)};
  gpu.name = "NVIDIA H200";
  gpu.pci = {.bus = static_cast<std::uint8_t>(0x3b + index)};
  gpu.minor = static_cast<std::uint32_t>(index);
  gpu.compute_capability = {{.major = 9, .minor = 0}};
  gpu.brand = "NVIDIA RTX";
  gpu.mig.current = model::MigMode::Disabled;
  gpu.health.state = model::HealthState::Ok;
  gpu.drm_nodes = {fmt::format("/dev/dri/card{}", index),
                   fmt::format("/dev/dri/by-path/pci-{}-card", gpu.pci.sysfs())};
  return gpu;
}

inline model::DeviceNode node_for_test(std::string path, std::uint32_t major, std::uint32_t minor,
                                       std::uint32_t mode = 0666, std::uint32_t gid = 0) {
  return {.path = std::move(path), .major = major, .minor = minor, .mode = mode, .gid = gid};
}

inline model::DriverFile library_for_test(const std::string& stem, model::Capability capability) {
  return {.path = fmt::format("/usr/lib/x86_64-linux-gnu/{}.so.580.159.04", stem),
          .capabilities = {capability},
          .soname = stem + ".so.1",
          .links = {stem + ".so", stem + ".so.1"}};
}

inline model::Inventory machine_for_test() {
  using enum model::Capability;
  using enum model::DriverFileKind;
  model::Inventory machine;
  machine.driver = {
      .version = "580.159.04", .library_version = "580.159.04", .cuda_version = "13.0"};
  for (int i = 0; i < 3; ++i) {
    machine.gpus.push_back(gpu_for_test(i));
    machine.nodes.push_back(
        node_for_test(fmt::format("/dev/nvidia{}", i), 195, static_cast<std::uint32_t>(i)));
    machine.nodes.push_back(node_for_test(fmt::format("/dev/dri/card{}", i), 226,
                                          static_cast<std::uint32_t>(i), 0660, 44));
  }
  machine.nodes.push_back(node_for_test("/dev/nvidiactl", 195, 255));
  machine.nodes.push_back(node_for_test("/dev/nvidia-uvm", 506, 0));
  machine.nodes.push_back(node_for_test("/dev/nvidia-uvm-tools", 506, 1));
  machine.nodes.push_back(node_for_test("/dev/nvidia-modeset", 195, 254));
  auto& mig = machine.gpus[2].mig;
  mig.current = model::MigMode::Enabled;
  for (int i = 0; i < 2; ++i) {
    mig.instances.push_back(
        {.uuid = {fmt::format("MIG-0000000{}-1111-2222-3333-444444444444", i)},
         .index = i,
         .gpu_instance = 7 + i,
         .profile = "1g.18gb",
         .gpu_instance_node = fmt::format("/dev/nvidia-caps/nvidia-cap{}", 30 + 3 * i),
         .compute_instance_node = fmt::format("/dev/nvidia-caps/nvidia-cap{}", 31 + 3 * i)});
    for (const auto& path :
         {mig.instances.back().gpu_instance_node, mig.instances.back().compute_instance_node})
      machine.nodes.push_back(node_for_test(path, 507, 30, 0444));
  }
  machine.files = {library_for_test("libcuda", Compute), library_for_test("libnvidia-ml", Utility),
                   library_for_test("libnvidia-encode", Video),
                   library_for_test("libGLX_nvidia", Graphics),
                   library_for_test("libnvidia-allocator", Graphics)};
  machine.files.push_back(
      {.path = "/usr/bin/nvidia-smi", .kind = Binary, .capabilities = {Utility}});
  machine.files.push_back(
      {.path = "/usr/bin/nvidia-cuda-mps-control", .kind = Binary, .capabilities = {Compute}});
  machine.files.push_back(
      {.path = "/etc/OpenCL/vendors/nvidia.icd", .kind = Config, .capabilities = {Compute}});
  machine.files.push_back({.path = "/usr/share/vulkan/icd.d/nvidia_icd.json",
                           .kind = Config,
                           .capabilities = {Graphics}});
  machine.files.push_back(
      {.path = "/run/nvidia-persistenced/socket", .kind = IpcSocket, .capabilities = {Utility}});
  machine.files.push_back({.path = "/usr/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin",
                           .kind = Firmware,
                           .capabilities = {Compute, Utility},
                           .links = {"/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin"}});
  return machine;
}

}  // namespace gantry::plan
