// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

using enum Verdict;

// As in seed 003.
constexpr std::string_view kDocker =
    R"({"default-runtime": "nvidia", "runtimes": {"nvidia": {"path":
    "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}},
    "exec-opts": ["native.cgroupdriver=systemd"]})";
constexpr std::string_view kDockerNoDefault =
    R"({"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}})";

void docker(TestMachine& p, std::string_view config) {
  p.tree.file("etc/docker/daemon.json", config);
}

void toolkit(TestMachine& p, std::string_view config) {
  p.tree.file("etc/nvidia-container-runtime/config.toml", config);
}

// As in seed 002.
constexpr std::string_view kContainerd = R"(version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "/usr/bin/nvidia-container-runtime"
      SystemdCgroup = true
)";
constexpr std::string_view kContainerdNoDefault = R"(version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
)";

void containerd(TestMachine& p, std::string_view config) {
  p.kubelet().tree.file("etc/containerd/config.toml", config);
}

constexpr std::string_view kCrio = "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/opt/ncr\"\n";
constexpr std::string_view kHook =
    R"({"version": "1.0.0", "hook": {"path": "/opt/bin/nvidia-container-runtime-hook"}})";

void crio(TestMachine& p, std::string_view config) {
  p.tree.file("usr/bin/crio").file("etc/crio/crio.conf.d/99-nvidia.conf", config);
}

constexpr std::string_view kSpec = R"(cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      major: 195
      minor: 0
containerEdits:
  mounts:
  - hostPath: {}
    containerPath: /usr/lib/libcuda.so.1
)";

std::string spec(std::string_view library = "/usr/local/nvidia/lib64/libcuda.so.580.159.04") {
  return fmt::format(fmt::runtime(kSpec), library);
}

}  // namespace

std::vector<Case> runtime_cases() {
  return {
      {"docker.config", Skip, unchanged},
      {"docker.config", Ok, [](TestMachine& p) { docker(p, kDocker); }},
      {"docker.config", Fail, [](TestMachine& p) { docker(p, "{\"runtimes\": "); }},
      {"docker.runtime", Ok, [](TestMachine& p) { docker(p, kDocker); }},
      {"docker.runtime", Warn, [](TestMachine& p) { p.tree.file("usr/bin/dockerd"); }},
      {"docker.runtime-path", Fail, [](TestMachine& p) { docker(p, kDocker); }},
      {"docker.runtime-path", Ok,
       [](TestMachine& p) {
         docker(p, kDocker);
         p.tree.file("usr/bin/nvidia-container-runtime");
       }},
      {"docker.default-runtime", Ok, [](TestMachine& p) { docker(p, kDocker); }},
      {"docker.default-runtime", Info, [](TestMachine& p) { docker(p, kDockerNoDefault); }},
      {"docker.default-runtime", Warn,
       [](TestMachine& p) {
         docker(p, kDockerNoDefault);
         p.tree.file("run/cri-dockerd.sock");
       }},
      {"docker.snap", Ok, [](TestMachine& p) { docker(p, kDocker); }},
      {"docker.snap", Warn, [](TestMachine& p) { p.tree.directory("var/snap/docker"); }},
      {"toolkit.config", Skip, unchanged},
      {"toolkit.config", Ok, [](TestMachine& p) { toolkit(p, "[nvidia-container-cli]\n"); }},
      {"toolkit.config", Fail, [](TestMachine& p) { toolkit(p, "[nvidia-container-cli\n"); }},
      {"toolkit.ldconfig", Fail,
       [](TestMachine& p) {
         toolkit(p, "[nvidia-container-cli]\nldconfig = \"@/sbin/ldconfig.real\"\n");
       }},
      {"toolkit.ldconfig", Ok,
       [](TestMachine& p) {
         toolkit(p, "[nvidia-container-cli]\nldconfig = \"@/sbin/ldconfig\"\n");
         p.tree.file("sbin/ldconfig");
       }},
      {"toolkit.no-cgroups", Warn,
       [](TestMachine& p) { toolkit(p, "[nvidia-container-cli]\nno-cgroups = true\n"); }},
      {"toolkit.no-cgroups", Ok,
       [](TestMachine& p) { toolkit(p, "[nvidia-container-cli]\nno-cgroups = false\n"); }},
      {"toolkit.unprivileged", Info,
       [](TestMachine& p) {
         p.kubelet();
         toolkit(p, "");
       }},
      {"toolkit.unprivileged", Ok,
       [](TestMachine& p) {
         p.kubelet();
         toolkit(p, "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n");
       }},
      {"classic.hook", Ok, unchanged},
      {"classic.hook", Info,
       [](TestMachine& p) {
         p.tree.file("usr/share/containers/oci/hooks.d/oci-nvidia-hook.json", "{}");
       }},
      {"classic.hook", Info,
       [](TestMachine& p) { toolkit(p, "[nvidia-container-runtime]\nmode = \"legacy\"\n"); }},
      {"toolkit.twice", Ok, unchanged},
      {"toolkit.twice", Warn,
       [](TestMachine& p) {
         p.tree.file("usr/share/containers/oci/hooks.d/oci-nvidia-hook.json")
             .file("etc/cdi/nvidia.yaml", spec());
       }},
      {"containerd.config", Skip, unchanged},
      {"containerd.config", Ok, [](TestMachine& p) { containerd(p, kContainerd); }},
      {"containerd.config", Fail, [](TestMachine& p) { containerd(p, "version = \n"); }},
      {"containerd.config", Warn,
       [](TestMachine& p) {
         containerd(p,
                    "version = 2\n[plugins.\"io.containerd.cri.v1.runtime\"]\nenable_cdi=true\n");
       }},
      {"containerd.runtime", Warn, [](TestMachine& p) { containerd(p, "version = 2\n"); }},
      {"containerd.runtime", Ok, [](TestMachine& p) { containerd(p, kContainerd); }},
      {"containerd.runtime", Ok, [](TestMachine& p) { containerd(p, "version = 3\n"); }},
      {"containerd.runtime", Ok,
       [](TestMachine& p) {
         containerd(p, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n");
         p.tree.file("etc/containerd/conf.d/99-nvidia.toml", kContainerd);
       }},
      {"containerd.runtime-path", Fail, [](TestMachine& p) { containerd(p, kContainerd); }},
      {"containerd.runtime-path", Ok,
       [](TestMachine& p) {
         containerd(p, kContainerd);
         p.tree.file("usr/bin/nvidia-container-runtime");
       }},
      {"containerd.default-runtime", Ok, [](TestMachine& p) { containerd(p, kContainerd); }},
      {"containerd.default-runtime", Info,
       [](TestMachine& p) { containerd(p, kContainerdNoDefault); }},
      {"containerd.cri", Ok, [](TestMachine& p) { containerd(p, kContainerd); }},
      {"containerd.cri", Fail,
       [](TestMachine& p) { containerd(p, "disabled_plugins = [\"cri\"]\n"); }},
      {"crio.config", Skip, unchanged},
      {"crio.config", Ok, [](TestMachine& p) { crio(p, ""); }},
      {"crio.config", Fail, [](TestMachine& p) { crio(p, "[crio.runtime\n"); }},
      {"crio.runtime", Warn, [](TestMachine& p) { p.tree.file("usr/bin/crio"); }},
      {"crio.runtime", Ok, [](TestMachine& p) { crio(p, kCrio); }},
      {"crio.runtime", Ok,  // a drop-in in a subdirectory
       [](TestMachine& p) {
         p.tree.file("usr/bin/crio").file("etc/crio/crio.conf.d/gpus/nvidia.conf", kCrio);
       }},
      {"crio.runtime", Ok,
       [](TestMachine& p) {
         crio(p, "[crio.runtime]\nhooks_dir = [\"/opt/hooks\"]\n");
         p.tree.file("opt/hooks/gpu.json", kHook);
       }},
      {"crio.runtime", Warn,  // CRI-O does not read the usual directory here
       [](TestMachine& p) {
         crio(p, "[crio.runtime]\nhooks_dir = [\"/opt/hooks\"]\n");
         p.tree.file("usr/share/containers/oci/hooks.d/oci-nvidia-hook.json", kHook);
       }},
      {"crio.programs", Skip, [](TestMachine& p) { crio(p, ""); }},
      {"crio.programs", Fail, [](TestMachine& p) { crio(p, kCrio); }},
      {"crio.programs", Ok,
       [](TestMachine& p) {
         crio(p, kCrio);
         p.tree.file("opt/ncr");
       }},
      {"crio.programs", Fail,  // a later file names a program that is not there
       [](TestMachine& p) {
         crio(p, kCrio);
         p.tree.file("opt/ncr").file(
             "etc/crio/crio.conf.d/99-z.conf",
             "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/opt/gone\"\n");
       }},
      {"crio.programs", Fail,
       [](TestMachine& p) {
         crio(p, "");
         p.tree.file("usr/share/containers/oci/hooks.d/oci-nvidia-hook.json", kHook);
       }},
      {"cri.cgroup-driver", Ok, [](TestMachine& p) { containerd(p, kContainerd); }},
      {"cri.cgroup-driver", Fail,
       [](TestMachine& p) {
         containerd(p, kContainerd);
         p.kubelet("cgroupDriver: cgroupfs\n");
       }},
      {"cri.cgroup-driver", Ok,
       [](TestMachine& p) {
         docker(p, kDocker);
         p.kubelet();
       }},
      {"cdi.readable", Skip, unchanged},
      {"cdi.readable", Ok, [](TestMachine& p) { p.tree.file("etc/cdi/nvidia.yaml", spec()); }},
      {"cdi.readable", Fail,
       [](TestMachine& p) { p.tree.file("etc/cdi/nvidia.yaml", "devices: ["); }},
      {"cdi.readable", Fail,
       [](TestMachine& p) { p.tree.file("etc/cdi/nvidia.yaml", spec() + "unknown: 1\n"); }},
      {"cdi.stale", Ok, [](TestMachine& p) { p.tree.file("etc/cdi/nvidia.yaml", spec()); }},
      {"cdi.stale", Fail,
       [](TestMachine& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec("/usr/lib/libcuda.so.535.54.03"));
       }},
      {"cdi.stale", Fail,
       [](TestMachine& p) {
         p.node("/dev/nvidia0", "c 195 1 0666 0 0").tree.file("etc/cdi/nvidia.yaml", spec());
       }},
      {"cdi.duplicate", Ok, [](TestMachine& p) { p.tree.file("etc/cdi/nvidia.yaml", spec()); }},
      {"cdi.duplicate", Fail,
       [](TestMachine& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec()).file("etc/cdi/other.yaml", spec());
       }},
      {"cdi.duplicate", Warn,
       [](TestMachine& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec()).file("var/run/cdi/nvidia.yaml", spec());
       }},
      {"cdi.duplicate", Fail,
       [](TestMachine& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec())
             .file("var/run/cdi/nvidia.yaml", spec())
             .file("var/run/cdi/other.yaml", spec());
       }},
  };
}

}  // namespace gantry::doctor
