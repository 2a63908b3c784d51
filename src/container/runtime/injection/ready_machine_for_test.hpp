// SPDX-License-Identifier: Apache-2.0
// A small machine in a tree, with everything that the start of a container needs: driver in procfs,
// nodes, driver files, inventory and prepared directory. GPU 1 is divided.
#pragma once

#include "container/driver_dir/publish.hpp"
#include "gpu/model/inventory_json.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace gantry::runtime {

class ReadyMachine {
 public:
  ReadyMachine() {
    tree_.file("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Sep 30 2025\n"
               "GCC version: 12\n");
    tree_.file("proc/sys/kernel/random/boot_id", "boot-1\n");
    tree_.file("dev.table",
               "/dev/nvidiactl c 195 255 0666 0 0\n/dev/nvidia-uvm c 509 0 0666 0 0\n"
               "/dev/nvidia-uvm-tools c 509 1 0666 0 0\n/dev/nvidia0 c 195 0 0660 0 44\n"
               "/dev/nvidia1 c 195 1 0660 0 44\n/dev/nvidia-caps/nvidia-cap12 c 510 12 0444 0 0\n"
               "/dev/nvidia-caps/nvidia-cap13 c 510 13 0444 0 0\n");
    machine_.boot_id = "boot-1";
    machine_.generation = "g";
    machine_.driver = {.version = "580.159.04",
                       .library_version = "580.159.04",
                       .cuda_version = "13.0",
                       .library_directory = "/usr/lib64"};
    add_gpu(0);
    add_gpu(1);
    divide(machine_.gpus[1]);
    machine_.links.assign(2, std::vector<model::Link>(2));
    for (const char* node :
         {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0",
          "/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}) {
      add_node(node);
    }
    add_file({.path = "/usr/lib64/libcuda.so.580.159.04",
              .capabilities = {model::Capability::Compute},
              .soname = "libcuda.so.1",
              .links = {"libcuda.so.1"}});
    add_file({.path = "/usr/bin/nvidia-smi",
              .kind = model::DriverFileKind::Binary,
              .capabilities = {model::Capability::Utility}});
    const auto published = driver_dir::publish(host(), machine_);
    EXPECT_TRUE(published.ok()) << published.error().text();
    write_inventory();
  }

  void write_inventory() { tree_.file("run/gantry/inventory.json", model::to_json(machine_)); }

  sys::Host host() const { return tree_.host(); }
  test::Tree& tree() { return tree_; }
  model::Inventory& inventory() { return machine_; }
  static std::string uuid(int index) {
    return fmt::format("GPU-0000000{}-0000-0000-0000-000000000000", index);
  }
  static constexpr const char* kMig = "MIG-00000001-0000-0000-0000-000000000001";

 private:
  void add_gpu(int index) {
    model::Gpu gpu;
    gpu.index = index;
    gpu.uuid.text = uuid(index);
    gpu.name = "NVIDIA H200";
    gpu.pci.bus = static_cast<std::uint8_t>(0x18 + index);
    gpu.minor = static_cast<std::uint32_t>(index);
    gpu.mig.current = model::MigMode::Disabled;
    gpu.health.state = model::HealthState::Ok;
    gpu.compute_capability = model::ComputeCapability{9, 0};
    tree_.file(fmt::format("proc/driver/nvidia/gpus/{}/information", gpu.pci.sysfs()),
               fmt::format("Model: \t NVIDIA H200\nGPU UUID: \t {}\nDevice Minor: \t {}\n",
                           gpu.uuid.text, index));
    machine_.gpus.push_back(std::move(gpu));
  }
  void divide(model::Gpu& gpu) {
    gpu.mig.current = model::MigMode::Enabled;
    gpu.mig.instances.push_back({.uuid = {kMig},
                                 .gpu_instance = 2,
                                 .profile = "1g.18gb",
                                 .gpu_instance_node = "/dev/nvidia-caps/nvidia-cap12",
                                 .compute_instance_node = "/dev/nvidia-caps/nvidia-cap13"});
    tree_.directory("proc/driver/nvidia/capabilities/gpu1/mig/gi2");
  }
  void add_node(const std::string& path) {
    const auto info = host().device(path);
    ASSERT_TRUE(info.ok()) << path;
    machine_.nodes.push_back({.path = path,
                              .major = info->major,
                              .minor = info->minor,
                              .mode = info->mode,
                              .uid = info->uid,
                              .gid = info->gid,
                              .why = path});
  }
  void add_file(model::DriverFile file) {
    tree_.file(file.path, file.path);
    machine_.files.push_back(std::move(file));
  }

  test::Tree tree_;
  model::Inventory machine_;
};

}  // namespace gantry::runtime
