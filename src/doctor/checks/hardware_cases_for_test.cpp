// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/patient_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

void passthrough(Patient& p) {
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

void behind_bridge(Patient& p, char control) {
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
      {"guest.kind", Ok, as_it_is},
      {"guest.kind", Ok, [](Patient& p) { p.metal(); }},
      {"guest.kind", Info, [](Patient& p) { p.tree.remove("proc/cpuinfo"); }},
      {"guest.wsl", Fail, [](Patient& p) { p.tree.file("dev/dxg"); }},
      {"guest.wsl", Ok,
       [](Patient& p) { p.tree.file("dev/dxg").file("usr/lib/wsl/lib/libcuda.so.1"); }},
      {"guest.licence", Warn, [](Patient& p) { p.gpu().virtualization = "VGPU"; }},
      {"guest.licence", Ok,
       [](Patient& p) {
         p.process("nvidia-gridd").gpu().virtualization = "VGPU";
         p.tree.file("etc/nvidia/ClientConfigToken/client.tok");
       }},
      {"guest.vgpu-host", Fail,
       [](Patient& p) { p.tree.directory("sys/module/nvidia_vgpu_vfio"); }},
      {"guest.vgpu-host", Ok,
       [](Patient& p) {
         p.process("nvidia-vgpu-mgr").tree.directory("sys/module/nvidia_vgpu_vfio");
       }},
      {"pci.present", Ok, as_it_is},
      {"pci.present", Fail, [](Patient& p) { p.inventory.functions.clear(); }},
      {"pci.alive", Ok, as_it_is},
      {"pci.alive", Fail, [](Patient& p) { p.pci("config", "\xff\xff\xff\xff\xff"); }},
      {"pci.bars", Ok, as_it_is},
      {"pci.bars", Fail,
       [](Patient& p) {
         p.pci("resource",
               "0x0000104002000000 0x0000104002ffffff 0x000000000014220c\n"
               "0x0000000000000000 0x0000000fffffffff 0x000000000014220c\n");
       }},
      {"pci.bars", Fail,
       [](Patient& p) { p.pci("resource", "0x0 0x0 0x0\n0x1000 0x1fff 0x200\n"); }},
      {"pci.link-width", Ok, as_it_is},
      {"pci.link-width", Warn, [](Patient& p) { p.pci("current_link_width", "8\n"); }},
      {"pci.link-width", Skip, [](Patient& p) { p.pci("current_link_width", "0\n"); }},
      {"pci.power", Ok, as_it_is},
      {"pci.power", Warn,
       [](Patient& p) { p.pci("power/control", "auto").pci("power/runtime_status", "suspended"); }},
      {"pci.interrupt", Ok, as_it_is},
      {"pci.interrupt", Warn, [](Patient& p) { p.pci("irq", "0\n"); }},
      {"pci.reset", Ok, as_it_is},
      {"pci.reset", Info, [](Patient& p) { p.pci("reset_method", "pm\n"); }},
      {"pci.nouveau", Ok, as_it_is},
      {"pci.nouveau", Fail, [](Patient& p) { p.unloaded().function().driver = "nouveau"; }},
      {"pci.nouveau", Warn, [](Patient& p) { p.tree.directory("sys/module/nouveau"); }},
      {"pci.foreign-driver", Ok, as_it_is},
      {"pci.foreign-driver", Fail, [](Patient& p) { p.function().driver = "nova_core"; }},
      {"pci.unbound", Ok, as_it_is},
      {"pci.unbound", Fail, [](Patient& p) { p.function().driver = ""; }},
      {"pci.override", Ok, as_it_is},
      {"pci.override", Warn, [](Patient& p) { p.function().driver_override = "vfio-pci"; }},
      {"pci.override", Ok, passthrough},
      {"pci.passthrough", Ok, as_it_is},
      {"pci.passthrough", Info, passthrough},
      {"iommu.off", Skip, as_it_is},
      {"iommu.off", Info, [](Patient& p) { p.metal(); }},
      {"iommu.off", Fail, passthrough},
      {"iommu.off", Ok, [](Patient& p) { p.metal().tree.directory("sys/class/iommu/dmar0"); }},
      {"iommu.group", Ok, passthrough},
      {"iommu.group", Fail,
       [](Patient& p) {
         passthrough(p);
         p.tree.link("sys/bus/pci/devices/0000:00:06.1/driver", "../../drivers/snd_hda_intel");
       }},
      {"iommu.translating", Info,
       [](Patient& p) {
         p.metal().second_gpu().function().iommu_group = 3;
         p.tree.file("sys/kernel/iommu_groups/3/type", "DMA-FQ\n");
       }},
      {"iommu.translating", Ok,
       [](Patient& p) {
         p.metal().second_gpu().function().iommu_group = 3;
         p.tree.file("sys/kernel/iommu_groups/3/type", "identity\n");
       }},
      {"iommu.acs", Warn, [](Patient& p) { behind_bridge(p, 0x1D); }},
      {"iommu.acs", Ok, [](Patient& p) { behind_bridge(p, 0); }},
      {"numa.unknown", Info, as_it_is},
      {"numa.unknown", Warn,
       [](Patient& p) { p.tree.file("sys/devices/system/node/online", "0-1\n"); }},
      {"numa.unknown", Ok, [](Patient& p) { p.pci("numa_node", "0\n"); }},
      {"numa.memory-only", Skip, as_it_is},
      {"numa.memory-only", Warn, [](Patient& p) { p.pci("numa_node", "8\n"); }},
      {"numa.memory-only", Ok, [](Patient& p) { p.pci("numa_node", "0\n"); }},
  };
}

}  // namespace gantry::doctor
