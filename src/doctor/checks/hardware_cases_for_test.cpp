// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

void passthrough(TestMachine& p) {
  p.metal().function().driver = "vfio-pci";
  p.function().driver_override = "vfio-pci";
  p.function().iommu_group = 12;
  p.tree.directory("sys/kernel/iommu_groups/12/devices/0000:00:06.0")
      .link("sys/bus/pci/devices/0000:00:06.0/driver", "../../drivers/vfio-pci")
      .directory("sys/kernel/iommu_groups/12/devices/0000:00:06.1");
}

// An ACS capability at 0x100 whose control register is `control`.
std::string bridge_config(char control) {
  std::string config(0x110, '\0');
  config[0x100] = 0x0D;
  config[0x106] = control;
  return config;
}

void behind_bridge(TestMachine& p, char control) {
  p.metal().second_gpu();
  p.tree.remove("sys/bus/pci/devices/0000:00:06.0")
      .file("sys/devices/pci0000:00/0000:00:01.0/config", bridge_config(control))
      .directory("sys/devices/pci0000:00/0000:00:01.0/0000:00:06.0")
      .link("sys/bus/pci/devices/0000:00:06.0",
            "../../../devices/pci0000:00/0000:00:01.0/0000:00:06.0");
}

}  // namespace

std::vector<Case> hardware_cases() {
  return {
      {"guest.kind", Ok, unchanged},
      {"guest.kind", Ok, [](TestMachine& p) { p.metal(); }},
      {"guest.kind", Info, [](TestMachine& p) { p.tree.remove("proc/cpuinfo"); }},
      {"guest.wsl", Fail, [](TestMachine& p) { p.tree.file("dev/dxg"); }},
      {"guest.wsl", Ok,
       [](TestMachine& p) { p.tree.file("dev/dxg").file("usr/lib/wsl/lib/libcuda.so.1"); }},
      {"guest.licence", Warn, [](TestMachine& p) { p.gpu().virtualization = "VGPU"; }},
      {"guest.licence", Ok,
       [](TestMachine& p) {
         p.process("nvidia-gridd").gpu().virtualization = "VGPU";
         p.tree.file("etc/nvidia/ClientConfigToken/client.tok");
       }},
      {"guest.vgpu-host", Fail,
       [](TestMachine& p) { p.tree.directory("sys/module/nvidia_vgpu_vfio"); }},
      {"guest.vgpu-host", Ok,
       [](TestMachine& p) {
         p.process("nvidia-vgpu-mgr").tree.directory("sys/module/nvidia_vgpu_vfio");
       }},
      {"pci.present", Ok, unchanged},
      {"pci.present", Fail, [](TestMachine& p) { p.inventory.functions.clear(); }},
      {"pci.alive", Ok, unchanged},
      {"pci.alive", Fail, [](TestMachine& p) { p.pci("config", "\xff\xff\xff\xff\xff"); }},
      {"pci.bars", Ok, unchanged},
      {"pci.bars", Fail,
       [](TestMachine& p) {
         p.pci("resource",
               "0x0000104002000000 0x0000104002ffffff 0x000000000014220c\n"
               "0x0000000000000000 0x0000000fffffffff 0x000000000014220c\n");
       }},
      {"pci.bars", Fail,
       [](TestMachine& p) { p.pci("resource", "0x0 0x0 0x0\n0x1000 0x1fff 0x200\n"); }},
      {"pci.link-width", Ok, unchanged},
      {"pci.link-width", Warn, [](TestMachine& p) { p.pci("current_link_width", "8\n"); }},
      {"pci.link-width", Skip, [](TestMachine& p) { p.pci("current_link_width", "0\n"); }},
      {"pci.power", Ok, unchanged},
      {"pci.power", Warn,
       [](TestMachine& p) {
         p.pci("power/control", "auto").pci("power/runtime_status", "suspended");
       }},
      {"pci.interrupt", Ok, unchanged},
      {"pci.interrupt", Warn, [](TestMachine& p) { p.pci("irq", "0\n"); }},
      {"pci.reset", Ok, unchanged},
      {"pci.reset", Info, [](TestMachine& p) { p.pci("reset_method", "pm\n"); }},
      {"pci.nouveau", Ok, unchanged},
      {"pci.nouveau", Fail, [](TestMachine& p) { p.unloaded().function().driver = "nouveau"; }},
      {"pci.nouveau", Warn, [](TestMachine& p) { p.tree.directory("sys/module/nouveau"); }},
      {"pci.foreign-driver", Ok, unchanged},
      {"pci.foreign-driver", Fail, [](TestMachine& p) { p.function().driver = "nova_core"; }},
      {"pci.unbound", Ok, unchanged},
      {"pci.unbound", Fail, [](TestMachine& p) { p.function().driver = ""; }},
      {"pci.override", Ok, unchanged},
      {"pci.override", Warn, [](TestMachine& p) { p.function().driver_override = "vfio-pci"; }},
      {"pci.override", Ok, passthrough},
      {"pci.passthrough", Ok, unchanged},
      {"pci.passthrough", Info, passthrough},
      {"iommu.off", Skip, unchanged},
      {"iommu.off", Info, [](TestMachine& p) { p.metal(); }},
      {"iommu.off", Fail, passthrough},
      {"iommu.off", Ok, [](TestMachine& p) { p.metal().tree.directory("sys/class/iommu/dmar0"); }},
      {"iommu.group", Ok, passthrough},
      {"iommu.group", Fail,
       [](TestMachine& p) {
         passthrough(p);
         p.tree.link("sys/bus/pci/devices/0000:00:06.1/driver", "../../drivers/snd_hda_intel");
       }},
      {"iommu.translating", Info,
       [](TestMachine& p) {
         p.metal().second_gpu().function().iommu_group = 3;
         p.tree.file("sys/kernel/iommu_groups/3/type", "DMA-FQ\n");
       }},
      {"iommu.translating", Ok,
       [](TestMachine& p) {
         p.metal().second_gpu().function().iommu_group = 3;
         p.tree.file("sys/kernel/iommu_groups/3/type", "identity\n");
       }},
      {"iommu.acs", Warn, [](TestMachine& p) { behind_bridge(p, 0x1D); }},
      {"iommu.acs", Ok, [](TestMachine& p) { behind_bridge(p, 0); }},
      {"numa.unknown", Info, unchanged},
      {"numa.unknown", Warn,
       [](TestMachine& p) { p.tree.file("sys/devices/system/node/online", "0-1\n"); }},
      {"numa.unknown", Ok, [](TestMachine& p) { p.pci("numa_node", "0\n"); }},
      {"numa.memory-only", Skip, unchanged},
      {"numa.memory-only", Warn, [](TestMachine& p) { p.pci("numa_node", "8\n"); }},
      {"numa.memory-only", Ok, [](TestMachine& p) { p.pci("numa_node", "0\n"); }},
  };
}

}  // namespace gantry::doctor
