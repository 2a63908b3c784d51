// SPDX-License-Identifier: Apache-2.0
#include "doctor/patient_for_test.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

using enum Verdict;

void checkpoint(Patient& p, std::string_view id) {
  p.kubelet().tree.file(
      "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
      fmt::format(R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"u1","ContainerName":"c",
        "ResourceName":"nvidia.com/gpu","DeviceIDs":{{"-1":["{0}"]}},"AllocResp":""}}],
        "RegisteredDevices":{{"nvidia.com/gpu":["{0}"]}}}},"Checksum":1}})",
                  id));
}

void nvlink5(Patient& p) {
  p.second_gpu().gpu().architecture = "Blackwell";
  p.process("nv-fabricmanager").tree.directory("sys/module/ib_umad");
}

void imex(Patient& p) {
  p.tree.file("etc/nvidia-imex/nodes_config.cfg", "# nodes\n10.0.0.1\n");
}

}  // namespace

std::vector<Case> cluster_cases() {
  return {
      {"kubelet.socket", Skip, as_it_is},
      {"kubelet.socket", Ok, [](Patient& p) { p.kubelet(); }},
      {"kubelet.socket", Fail,
       [](Patient& p) { p.kubelet().tree.remove("var/lib/kubelet/device-plugins/kubelet.sock"); }},
      {"kubelet.plugin", Info, [](Patient& p) { p.kubelet(); }},
      {"kubelet.plugin", Warn,
       [](Patient& p) { p.kubelet().tree.file("var/lib/kubelet/device-plugins/nvidia-gpu.sock"); }},
      {"kubelet.plugin", Ok,
       [](Patient& p) {
         checkpoint(p, p.gpu().uuid.text);
         p.tree.file("var/lib/kubelet/device-plugins/nvidia-gpu.sock");
       }},
      {"kubelet.checkpoint", Ok, [](Patient& p) { checkpoint(p, p.gpu().uuid.text); }},
      {"kubelet.checkpoint", Ok, [](Patient& p) { checkpoint(p, p.gpu().uuid.text + "::3"); }},
      {"kubelet.checkpoint", Fail, [](Patient& p) { checkpoint(p, "GPU-of-another-machine"); }},
      {"kubelet.checkpoint", Fail, [](Patient& p) { checkpoint(p, "\"}"); }},
      {"kubelet.topology", Ok, [](Patient& p) { p.kubelet(); }},
      {"kubelet.topology", Warn,
       [](Patient& p) { p.kubelet("topologyManagerPolicy: single-numa-node\n"); }},
      {"kubelet.topology", Ok,
       [](Patient& p) {
         p.kubelet("topologyManagerPolicy: single-numa-node\n").gpu().numa_node = 0;
       }},
      {"kubelet.podresources", Ok, [](Patient& p) { p.kubelet(); }},
      {"kubelet.podresources", Warn,
       [](Patient& p) { p.kubelet().tree.remove("var/lib/kubelet/pod-resources"); }},
      {"kubelet.validations", Warn,
       [](Patient& p) { p.tree.file("run/nvidia/validations/driver-ready"); }},
      {"kubelet.validations", Ok,
       [](Patient& p) {
         for (std::string_view name : {"driver", "toolkit", "cuda", "plugin"}) {
           p.tree.file(fmt::format("run/nvidia/validations/{}-ready", name));
         }
       }},
      {"fabric.manager", Skip, as_it_is},
      {"fabric.manager", Fail, [](Patient& p) { p.nvswitch(); }},
      {"fabric.manager", Ok, [](Patient& p) { p.nvswitch().process("nv-fabricmanager"); }},
      {"fabric.version", Fail,
       [](Patient& p) {
         p.nvswitch().tree.file("var/log/fabricmanager.log",
                                "[x] Fabric Manager version is : 580.95.05\n");
       }},
      {"fabric.version", Ok,
       [](Patient& p) {
         p.nvswitch().tree.file("var/log/fabricmanager.log",
                                "Fabric Manager version is : 535.1\n"
                                "Fabric Manager version is : 580.159.04\nok\n");
       }},
      {"fabric.subnet-manager", Fail, nvlink5},
      {"fabric.subnet-manager", Ok,
       [](Patient& p) {
         nvlink5(p);
         p.process("nvlsm");
       }},
      {"fabric.imex", Warn, imex},
      {"fabric.imex", Ok,
       [](Patient& p) {
         imex(p);
         p.process("nvidia-imex");
       }},
      {"fabric.nvlink-disable", Ok, as_it_is},
      {"fabric.nvlink-disable", Info, [](Patient& p) { p.param("NvLinkDisable", "0"); }},
      {"fabric.nvlink-disable", Warn, [](Patient& p) { p.nvswitch(); }},
      {"fabric.links", Ok, [](Patient& p) { p.second_gpu(); }},
      {"fabric.links", Warn,
       [](Patient& p) {
         p.second_gpu().inventory.gpus.push_back(p.gpu());
         p.inventory.links = {
             {{}, {.nvlinks = 18, .nvswitch = true}, {.nvlinks = 17, .nvswitch = true}},
             {{.nvlinks = 18, .nvswitch = true}, {}, {.nvlinks = 18, .nvswitch = true}},
             {{.nvlinks = 17, .nvswitch = true}, {.nvlinks = 18, .nvswitch = true}, {}}};
       }},
      {"fabric.peer-memory", Ok,
       [](Patient& p) { p.tree.directory("sys/class/infiniband/mlx5_0"); }},
      {"fabric.peer-memory", Info,
       [](Patient& p) {
         p.inventory.driver.flavour = model::ModuleFlavour::Proprietary;
         p.tree.directory("sys/class/infiniband/mlx5_0");
       }},
  };
}

}  // namespace gantry::doctor
