// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/patient_for_test.hpp"

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

void docker(Patient& p, std::string_view config) {
  p.tree.file("etc/docker/daemon.json", config);
}

void toolkit(Patient& p, std::string_view config) {
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

void containerd(Patient& p, std::string_view config) {
  p.kubelet().tree.file("etc/containerd/config.toml", config);
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
      {"docker.config", Skip, as_it_is},
      {"docker.config", Ok, [](Patient& p) { docker(p, kDocker); }},
      {"docker.config", Fail, [](Patient& p) { docker(p, "{\"runtimes\": "); }},
      {"docker.runtime", Ok, [](Patient& p) { docker(p, kDocker); }},
      {"docker.runtime", Warn, [](Patient& p) { p.tree.file("usr/bin/dockerd"); }},
      {"docker.runtime-path", Fail, [](Patient& p) { docker(p, kDocker); }},
      {"docker.runtime-path", Ok,
       [](Patient& p) {
         docker(p, kDocker);
         p.tree.file("usr/bin/nvidia-container-runtime");
       }},
      {"docker.default-runtime", Ok, [](Patient& p) { docker(p, kDocker); }},
      {"docker.default-runtime", Info, [](Patient& p) { docker(p, kDockerNoDefault); }},
      {"docker.default-runtime", Warn,
       [](Patient& p) {
         docker(p, kDockerNoDefault);
         p.tree.file("run/cri-dockerd.sock");
       }},
      {"docker.snap", Ok, [](Patient& p) { docker(p, kDocker); }},
      {"docker.snap", Warn, [](Patient& p) { p.tree.directory("var/snap/docker"); }},
      {"toolkit.config", Skip, as_it_is},
      {"toolkit.config", Ok, [](Patient& p) { toolkit(p, "[nvidia-container-cli]\n"); }},
      {"toolkit.config", Fail, [](Patient& p) { toolkit(p, "[nvidia-container-cli\n"); }},
      {"toolkit.ldconfig", Fail,
       [](Patient& p) {
         toolkit(p, "[nvidia-container-cli]\nldconfig = \"@/sbin/ldconfig.real\"\n");
       }},
      {"toolkit.ldconfig", Ok,
       [](Patient& p) {
         toolkit(p, "[nvidia-container-cli]\nldconfig = \"@/sbin/ldconfig\"\n");
         p.tree.file("sbin/ldconfig");
       }},
      {"toolkit.no-cgroups", Warn,
       [](Patient& p) { toolkit(p, "[nvidia-container-cli]\nno-cgroups = true\n"); }},
      {"toolkit.no-cgroups", Ok,
       [](Patient& p) { toolkit(p, "[nvidia-container-cli]\nno-cgroups = false\n"); }},
      {"toolkit.unprivileged", Info,
       [](Patient& p) {
         p.kubelet();
         toolkit(p, "");
       }},
      {"toolkit.unprivileged", Ok,
       [](Patient& p) {
         p.kubelet();
         toolkit(p, "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n");
       }},
      {"classic.hook", Ok, as_it_is},
      {"classic.hook", Info,
       [](Patient& p) {
         p.tree.file("usr/share/containers/oci/hooks.d/oci-nvidia-hook.json", "{}");
       }},
      {"classic.hook", Info,
       [](Patient& p) { toolkit(p, "[nvidia-container-runtime]\nmode = \"legacy\"\n"); }},
      {"toolkit.twice", Ok, as_it_is},
      {"toolkit.twice", Warn,
       [](Patient& p) {
         p.tree.file("usr/share/containers/oci/hooks.d/oci-nvidia-hook.json")
             .file("etc/cdi/nvidia.yaml", spec());
       }},
      {"containerd.config", Skip, as_it_is},
      {"containerd.config", Ok, [](Patient& p) { containerd(p, kContainerd); }},
      {"containerd.config", Fail, [](Patient& p) { containerd(p, "version = \n"); }},
      {"containerd.config", Warn,
       [](Patient& p) {
         containerd(p,
                    "version = 2\n[plugins.\"io.containerd.cri.v1.runtime\"]\nenable_cdi=true\n");
       }},
      {"containerd.runtime", Warn, [](Patient& p) { containerd(p, "version = 2\n"); }},
      {"containerd.runtime", Ok, [](Patient& p) { containerd(p, kContainerd); }},
      {"containerd.runtime", Ok, [](Patient& p) { containerd(p, "version = 3\n"); }},
      {"containerd.runtime", Ok,
       [](Patient& p) {
         containerd(p, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n");
         p.tree.file("etc/containerd/conf.d/99-nvidia.toml", kContainerd);
       }},
      {"containerd.runtime-path", Fail, [](Patient& p) { containerd(p, kContainerd); }},
      {"containerd.runtime-path", Ok,
       [](Patient& p) {
         containerd(p, kContainerd);
         p.tree.file("usr/bin/nvidia-container-runtime");
       }},
      {"containerd.default-runtime", Ok, [](Patient& p) { containerd(p, kContainerd); }},
      {"containerd.default-runtime", Warn, [](Patient& p) { containerd(p, kContainerdNoDefault); }},
      {"containerd.cri", Ok, [](Patient& p) { containerd(p, kContainerd); }},
      {"containerd.cri", Fail, [](Patient& p) { containerd(p, "disabled_plugins = [\"cri\"]\n"); }},
      {"crio.runtime", Warn, [](Patient& p) { p.tree.file("usr/bin/crio"); }},
      {"crio.runtime", Ok,
       [](Patient& p) {
         p.tree.file("usr/bin/crio")
             .file("etc/crio/crio.conf.d/99-nvidia.conf",
                   "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/x\"\n");
       }},
      {"cri.cgroup-driver", Ok, [](Patient& p) { containerd(p, kContainerd); }},
      {"cri.cgroup-driver", Fail,
       [](Patient& p) {
         containerd(p, kContainerd);
         p.kubelet("cgroupDriver: cgroupfs\n");
       }},
      {"cri.cgroup-driver", Ok,
       [](Patient& p) {
         docker(p, kDocker);
         p.kubelet();
       }},
      {"cdi.readable", Skip, as_it_is},
      {"cdi.readable", Ok, [](Patient& p) { p.tree.file("etc/cdi/nvidia.yaml", spec()); }},
      {"cdi.readable", Fail, [](Patient& p) { p.tree.file("etc/cdi/nvidia.yaml", "devices: ["); }},
      {"cdi.readable", Fail,
       [](Patient& p) { p.tree.file("etc/cdi/nvidia.yaml", spec() + "unknown: 1\n"); }},
      {"cdi.stale", Ok, [](Patient& p) { p.tree.file("etc/cdi/nvidia.yaml", spec()); }},
      {"cdi.stale", Fail,
       [](Patient& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec("/usr/lib/libcuda.so.535.54.03"));
       }},
      {"cdi.stale", Fail,
       [](Patient& p) {
         p.node("/dev/nvidia0", "c 195 1 0666 0 0").tree.file("etc/cdi/nvidia.yaml", spec());
       }},
      {"cdi.duplicate", Ok, [](Patient& p) { p.tree.file("etc/cdi/nvidia.yaml", spec()); }},
      {"cdi.duplicate", Fail,
       [](Patient& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec()).file("etc/cdi/other.yaml", spec());
       }},
      {"cdi.duplicate", Warn,
       [](Patient& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec()).file("var/run/cdi/nvidia.yaml", spec());
       }},
      {"cdi.duplicate", Fail,
       [](Patient& p) {
         p.tree.file("etc/cdi/nvidia.yaml", spec())
             .file("var/run/cdi/nvidia.yaml", spec())
             .file("var/run/cdi/other.yaml", spec());
       }},
  };
}

}  // namespace gantry::doctor
