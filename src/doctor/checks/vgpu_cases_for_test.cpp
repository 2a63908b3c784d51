// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

constexpr std::string_view kStoredVgpu =
    R"({"version":1,"vgpus":[{"gpu":"0000:00:06.0","parent":"0000:00:06.0","type":"A10-4Q",)"
    R"("typeId":"nvidia-592","uuid":"83b8f4f2-509f-482f-8c1e-e6bfe0fa1001"}]})";

void host_driver(TestMachine& p) {
  p.tree.directory("sys/module/nvidia_vgpu_vfio");
  std::erase_if(p.inventory.files, [](const model::DriverFile& file) {
    return file.path.find("libcuda") != std::string::npos;
  });
}

void bound(TestMachine& p) {
  host_driver(p);
  p.pci("vendor", "0x10de\n").pci("device", "0x2236\n").pci("class", "0x030200\n");
  p.tree.link("sys/bus/pci/devices/0000:00:06.0/driver", "../../drivers/nvidia");
}

void with_types(TestMachine& p) {
  bound(p);
  p.pci("mdev_supported_types/nvidia-592/name", "NVIDIA A10-4Q\n")
      .pci("mdev_supported_types/nvidia-592/description", "framebuffer=4096M, max_instance=6\n")
      .pci("mdev_supported_types/nvidia-592/available_instances", "6\n");
  p.tree.link("sys/class/mdev_bus/0000:00:06.0", "../../bus/pci/devices/0000:00:06.0");
}

void with_stored_vgpu(TestMachine& p) {
  with_types(p);
  p.tree.file("var/lib/gantry/vgpu/intent.json", kStoredVgpu);
}

void with_vgpu(TestMachine& p) {
  with_stored_vgpu(p);
  const std::string device =
      "sys/bus/pci/devices/0000:00:06.0/83b8f4f2-509f-482f-8c1e-e6bfe0fa1001";
  p.tree.link(device + "/mdev_type", "../mdev_supported_types/nvidia-592")
      .link("sys/bus/mdev/devices/83b8f4f2-509f-482f-8c1e-e6bfe0fa1001",
            "../../../bus/pci/devices/0000:00:06.0/83b8f4f2-509f-482f-8c1e-e6bfe0fa1001");
}

}  // namespace

std::vector<Case> vgpu_cases() {
  return {
      {"vgpu.plain-driver", Skip, unchanged},
      {"vgpu.plain-driver", Fail, [](TestMachine& p) { p.tree.file("usr/bin/nvidia-vgpud"); }},
      {"vgpu.plain-driver", Fail,
       [](TestMachine& p) { p.tree.file("var/lib/gantry/vgpu/intent.json", kStoredVgpu); }},
      {"vgpu.plain-driver", Ok,
       [](TestMachine& p) {
         host_driver(p);
         p.tree.file("usr/bin/nvidia-vgpud");
       }},
      {"vgpu.host-driver", Skip, unchanged},
      {"vgpu.host-driver", Ok, host_driver},
      {"vgpu.host-driver", Fail,
       [](TestMachine& p) {
         host_driver(p);
         p.tree.file("etc/cdi/nvidia.yaml");
       }},
      {"vgpu.host-driver", Ok,
       [](TestMachine& p) {
         p.tree.directory("sys/module/nvidia_vgpu_vfio").file("etc/cdi/nvidia.yaml");
       }},
      {"vgpu.types", Skip, unchanged},
      {"vgpu.types", Fail, bound},
      {"vgpu.types", Ok, with_types},
      {"vgpu.types", Skip,
       [](TestMachine& p) {  // a model that the driver does not divide
         bound(p);
         p.tree.file("usr/share/nvidia/vgpu/vgpuConfig.xml",
                     R"(<pgpu><devId vendorId="0x10de" deviceId="0x1EB8"/></pgpu>)");
       }},
      {"vgpu.types", Fail,
       [](TestMachine& p) {
         bound(p);
         p.tree.file("usr/share/nvidia/vgpu/vgpuConfig.xml",
                     R"(<pgpu><devId vendorId="0x10DE" deviceId="0x2236"/></pgpu>)");
       }},
      {"vgpu.restored", Skip, unchanged},
      {"vgpu.restored", Warn, with_stored_vgpu},
      {"vgpu.restored", Ok, with_vgpu},
      {"vgpu.restored", Warn,
       [](TestMachine& p) {
         with_vgpu(p);
         p.tree.file("var/lib/gantry/vgpu/journal.json",
                     R"({"version":1,"command":"apply","gpus":[],"before":[],"steps":["x"]})");
       }},
      {"vgpu.restored", Fail,
       [](TestMachine& p) { p.tree.file("var/lib/gantry/vgpu/intent.json", "{"); }},
      {"module.uvm", Skip,
       [](TestMachine& p) {
         host_driver(p);
         p.tree.remove("sys/module/nvidia_uvm");
       }},
      {"lib.present", Ok, host_driver},
      {"guest.licence", Warn,
       [](TestMachine& p) {  // a token, but nothing that fetches the licence
         p.gpu().virtualization = "VGPU";
         p.tree.file("etc/nvidia/ClientConfigToken/client.tok");
       }},
  };
}

}  // namespace gantry::doctor
