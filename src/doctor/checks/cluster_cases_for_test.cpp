// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

using enum Verdict;

void checkpoint(TestMachine& p, std::string_view id) {
  p.kubelet().tree.file(
      "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
      fmt::format(R"({{"Data":{{"PodDeviceEntries":[{{"PodUID":"u1","ContainerName":"c",
        "ResourceName":"nvidia.com/gpu","DeviceIDs":{{"-1":["{0}"]}},"AllocResp":""}}],
        "RegisteredDevices":{{"nvidia.com/gpu":["{0}"]}}}},"Checksum":1}})",
                  id));
}

constexpr std::string_view kWell = R"("capacity":{"cpu":"8","nvidia.com/gpu":"1"},
  "allocatable":{"nvidia.com/gpu":"1"},"conditions":[{"type":"Ready","status":"True"}])";

// The node as the API server has it.
void node(TestMachine& p, std::string_view labels, std::string_view spec = "",
          std::string_view status = kWell) {
  p.sources.cluster = ClusterView{
      .node = fmt::format(
          R"({{"metadata":{{"name":"a","labels":{{{}}}}},"spec":{{{}}},"status":{{{}}}}})", labels,
          spec, status),
      .runtime_classes = R"({"items":[]})",
      .error = ""};
}

void well_node(TestMachine& p) {
  node(p, R"("nvidia.com/gpu.count":"1")");
}

void runtime_class(TestMachine& p) {
  well_node(p);
  p.sources.cluster->runtime_classes =
      R"({"items":[{"metadata":{"name":"nvidia"},"handler":"nvidia"}]})";
}

void containerd(TestMachine& p, std::string_view runtime) {
  p.tree.file("etc/containerd/config.toml",
              fmt::format("version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes."
                          "{}]\nruntime_type = \"io.containerd.runc.v2\"\n",
                          runtime));
}

void nvlink5(TestMachine& p) {
  p.second_gpu().gpu().architecture = "Blackwell";
  p.process("nv-fabricmanager").tree.directory("sys/module/ib_umad");
}

void imex(TestMachine& p) {
  p.tree.file("etc/nvidia-imex/nodes_config.cfg", "# nodes\n10.0.0.1\n");
}

}  // namespace

std::vector<Case> cluster_cases() {
  return {
      {"kubelet.socket", Skip, unchanged},
      {"kubelet.socket", Ok, [](TestMachine& p) { p.kubelet(); }},
      {"kubelet.socket", Fail,
       [](TestMachine& p) {
         p.kubelet().tree.remove("var/lib/kubelet/device-plugins/kubelet.sock");
       }},
      {"kubelet.plugin", Info, [](TestMachine& p) { p.kubelet(); }},
      {"kubelet.plugin", Warn,
       [](TestMachine& p) {
         p.kubelet().tree.file("var/lib/kubelet/device-plugins/nvidia-gpu.sock");
       }},
      {"kubelet.plugin", Ok,
       [](TestMachine& p) {
         checkpoint(p, p.gpu().uuid.text);
         p.tree.file("var/lib/kubelet/device-plugins/nvidia-gpu.sock");
       }},
      {"kubelet.checkpoint", Ok, [](TestMachine& p) { checkpoint(p, p.gpu().uuid.text); }},
      {"kubelet.checkpoint", Ok, [](TestMachine& p) { checkpoint(p, p.gpu().uuid.text + "::3"); }},
      {"kubelet.checkpoint", Fail, [](TestMachine& p) { checkpoint(p, "GPU-of-another-machine"); }},
      {"kubelet.checkpoint", Fail, [](TestMachine& p) { checkpoint(p, "\"}"); }},
      {"kubelet.registered", Skip, [](TestMachine& p) { p.kubelet(); }},
      {"kubelet.registered", Ok, [](TestMachine& p) { checkpoint(p, p.gpu().uuid.text); }},
      {"kubelet.registered", Warn, [](TestMachine& p) { checkpoint(p, "GPU-of-another-machine"); }},
      {"kubelet.registered", Info,
       [](TestMachine& p) {
         p.second_gpu();
         checkpoint(p, p.gpu().uuid.text);
       }},
      {"cluster.ready", Skip, unchanged},
      {"cluster.ready", Skip,
       [](TestMachine& p) { p.sources.cluster = ClusterView{.error = "connection refused"}; }},
      {"cluster.ready", Skip, [](TestMachine& p) { p.sources.cluster = ClusterView{.node = "{"}; }},
      {"cluster.ready", Ok, well_node},
      {"cluster.ready", Fail, [](TestMachine& p) { node(p, "", "", ""); }},
      {"cluster.capacity", Ok, well_node},
      {"cluster.capacity", Fail,
       [](TestMachine& p) { node(p, "", "", R"("capacity":{"cpu":"8"})"); }},
      {"cluster.capacity", Warn,
       [](TestMachine& p) {
         p.second_gpu();
         well_node(p);
       }},
      {"cluster.capacity", Ok,
       [](TestMachine& p) {
         p.second_gpu();
         node(p, "", "", R"("capacity":{"nvidia.com/gpu":"1","nvidia.com/mig-1g.10gb":"7"})");
       }},
      {"cluster.allocatable", Ok, well_node},
      {"cluster.allocatable", Warn,
       [](TestMachine& p) {
         node(p, "", "",
              R"("capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"7"},
              "conditions":[{"type":"GPUsHealthy","status":"False","message":"XID 79"}])");
       }},
      {"cluster.runtime-class", Skip, well_node},
      {"cluster.runtime-class", Ok,
       [](TestMachine& p) {
         containerd(p, "runc");
         well_node(p);
       }},
      {"cluster.runtime-class", Fail,
       [](TestMachine& p) {
         containerd(p, "runc");
         runtime_class(p);
       }},
      {"cluster.runtime-class", Warn,
       [](TestMachine& p) {
         containerd(p, "nvidia");
         well_node(p);
       }},
      {"cluster.runtime-class", Ok,
       [](TestMachine& p) {
         containerd(p, "nvidia");
         runtime_class(p);
       }},
      {"cluster.taints", Ok, well_node},
      {"cluster.taints", Ok,
       [](TestMachine& p) {
         node(p, "", R"("taints":[{"key":"nvidia.com/gpu","effect":"NoSchedule"}])");
       }},
      {"cluster.taints", Info,
       [](TestMachine& p) {
         node(p, "", R"("taints":[{"key":"team","value":"x","effect":"NoSchedule"}])");
       }},
      {"cluster.taints", Warn, [](TestMachine& p) { node(p, "", R"("unschedulable":true)"); }},
      {"cluster.labels", Ok, well_node},
      {"cluster.labels", Info, [](TestMachine& p) { node(p, ""); }},
      {"cluster.labels", Warn, [](TestMachine& p) { node(p, R"("nvidia.com/gpu.count":"8")"); }},
      {"cluster.labels", Warn,
       [](TestMachine& p) {
         node(p, R"("nvidia.com/gpu.deploy.device-plugin":"paused-for-mig-change")");
       }},
      {"cluster.upgrade", Skip, well_node},
      {"cluster.upgrade", Ok,
       [](TestMachine& p) { node(p, R"("nvidia.com/gpu-driver-upgrade-state":"upgrade-done")"); }},
      {"cluster.upgrade", Warn,
       [](TestMachine& p) {
         node(p, R"("nvidia.com/gpu-driver-upgrade-state":"drain-required")");
       }},
      {"cluster.upgrade", Fail,
       [](TestMachine& p) {
         node(p, R"("nvidia.com/gpu-driver-upgrade-state":"upgrade-failed")");
       }},
      {"cluster.mig-state", Skip, well_node},
      {"cluster.mig-state", Ok,
       [](TestMachine& p) { node(p, R"("nvidia.com/mig.config.state":"success")"); }},
      {"cluster.mig-state", Info,
       [](TestMachine& p) { node(p, R"("nvidia.com/mig.config.state":"pending")"); }},
      {"cluster.mig-state", Fail,
       [](TestMachine& p) { node(p, R"("nvidia.com/vgpu.config.state":"failed")"); }},
      {"kubelet.topology", Ok, [](TestMachine& p) { p.kubelet(); }},
      {"kubelet.topology", Warn,
       [](TestMachine& p) { p.kubelet("topologyManagerPolicy: single-numa-node\n"); }},
      {"kubelet.topology", Ok,
       [](TestMachine& p) {
         p.kubelet("topologyManagerPolicy: single-numa-node\n").gpu().numa_node = 0;
       }},
      {"kubelet.podresources", Ok, [](TestMachine& p) { p.kubelet(); }},
      {"kubelet.podresources", Warn,
       [](TestMachine& p) { p.kubelet().tree.remove("var/lib/kubelet/pod-resources"); }},
      {"kubelet.validations", Warn,
       [](TestMachine& p) { p.tree.file("run/nvidia/validations/driver-ready"); }},
      {"kubelet.validations", Ok,
       [](TestMachine& p) {
         for (std::string_view name : {"driver", "toolkit", "cuda", "plugin"}) {
           p.tree.file(fmt::format("run/nvidia/validations/{}-ready", name));
         }
       }},
      {"fabric.manager", Skip, unchanged},
      {"fabric.manager", Fail, [](TestMachine& p) { p.nvswitch(); }},
      {"fabric.manager", Ok, [](TestMachine& p) { p.nvswitch().process("nv-fabricmanager"); }},
      {"fabric.version", Fail,
       [](TestMachine& p) {
         p.nvswitch().tree.file("var/log/fabricmanager.log",
                                "[x] Fabric Manager version is : 580.95.05\n");
       }},
      {"fabric.version", Ok,
       [](TestMachine& p) {
         p.nvswitch().tree.file("var/log/fabricmanager.log",
                                "Fabric Manager version is : 535.1\n"
                                "Fabric Manager version is : 580.159.04\nok\n");
       }},
      {"fabric.subnet-manager", Fail, nvlink5},
      {"fabric.subnet-manager", Ok,
       [](TestMachine& p) {
         nvlink5(p);
         p.process("nvlsm");
       }},
      {"fabric.imex", Warn, imex},
      {"fabric.imex", Ok,
       [](TestMachine& p) {
         imex(p);
         p.process("nvidia-imex");
       }},
      {"fabric.nvlink-disable", Ok, unchanged},
      {"fabric.nvlink-disable", Info, [](TestMachine& p) { p.param("NvLinkDisable", "0"); }},
      {"fabric.nvlink-disable", Warn, [](TestMachine& p) { p.nvswitch(); }},
      {"fabric.links", Ok, [](TestMachine& p) { p.second_gpu(); }},
      {"fabric.links", Warn,
       [](TestMachine& p) {
         p.second_gpu().inventory.gpus.push_back(p.gpu());
         p.inventory.links = {
             {{}, {.nvlinks = 18, .nvswitch = true}, {.nvlinks = 17, .nvswitch = true}},
             {{.nvlinks = 18, .nvswitch = true}, {}, {.nvlinks = 18, .nvswitch = true}},
             {{.nvlinks = 17, .nvswitch = true}, {.nvlinks = 18, .nvswitch = true}, {}}};
       }},
      {"fabric.peer-memory", Ok,
       [](TestMachine& p) { p.tree.directory("sys/class/infiniband/mlx5_0"); }},
      {"fabric.peer-memory", Info,
       [](TestMachine& p) {
         p.inventory.driver.flavour = model::ModuleFlavour::Proprietary;
         p.tree.directory("sys/class/infiniband/mlx5_0");
       }},
  };
}

}  // namespace gantry::doctor
