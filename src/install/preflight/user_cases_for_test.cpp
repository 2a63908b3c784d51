// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/host_for_test.hpp"

#include <fmt/format.h>

namespace gantry::preflight {
namespace {

using enum Severity;

constexpr std::string_view kStatus =
    "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.17.0-1\n\n"
    "Package: nvidia-driver-535\nStatus: install ok installed\nVersion: 535.183.01-0ubuntu1\n\n"
    "Package: nvidia-driver-470\nStatus: deinstall ok config-files\nVersion: 470.1-1\n";

void with_library(TestHost& host, std::string_view directory, std::string_view version) {
  host.file(fmt::format("{}/libcuda.so.{}", directory, version), "");
  host.file(fmt::format("{}/libnvidia-ml.so.{}", directory, version), "");
  host.link(fmt::format("{}/libcuda.so.1", directory), fmt::format("libcuda.so.{}", version));
}

std::string container_cgroup() {
  return fmt::format(
      "0::/kubepods.slice/kubepods-besteffort.slice/"
      "kubepods-besteffort-pod6f9c1d1e_0d5a_4b1e_9a51_0123456789ab.slice/cri-containerd-{}.scope\n",
      std::string(64, 'a'));
}

void in_use(TestHost& host) {
  host.loaded().process(4711, "train", container_cgroup()).opens(4711, "/dev/nvidia0");
  host.opens(4711, "/dev/nvidiactl");
  host.file("/var/log/pods/default_train_6f9c1d1e-0d5a-4b1e-9a51-0123456789ab/train/0.log", "");
}

}  // namespace

std::vector<FindingCase> user_cases() {
  return {
      {"driver-installed", Notes, "Gantry installed",
       [](TestHost& host) { host.file(std::string(kWorkDirectory) + "/installed.json", "{}\n"); }},
      {"installed-by-deb", Blocks, "sudo apt-get purge nvidia-driver-535 &&",
       [](TestHost& host) {
         host.file("/var/lib/dpkg/status", kStatus);
         with_library(host, "/usr/lib/x86_64-linux-gnu", "535.183.01");
       }},
      {"installed-by-rpm", Blocks, "rpm -qa '*nvidia*'",
       [](TestHost& host) {
         host.remove("/var/lib/dpkg").file("/var/lib/rpm/rpmdb.sqlite", "");
         with_library(host, "/usr/lib64", "535.183.01");
       }},
      {"installed-by-run", Blocks, "sudo nvidia-uninstall",
       [](TestHost& host) { host.file("/usr/bin/nvidia-uninstall", ""); }},
      {"installed-by-google", Warns, "put driver 460.56 into /home/kubernetes/bin/nvidia",
       [](TestHost& host) {
         host.file("/home/kubernetes/bin/nvidia/.cache",
                   "CACHE_KERNEL_VERSION=6.1.0-21-amd64\nCACHE_NVIDIA_DRIVER_VERSION=460.56\n");
       }},
      {"installed-by-container", Blocks, "/run/nvidia/driver",
       [](TestHost& host) { host.file("/run/nvidia/driver/usr/bin/nvidia-smi", ""); }},
      {"installed-by-container", Blocks,
       "process 4711 (nvidia-driver) holds /run/nvidia/nvidia-driver.pid",
       [](TestHost& host) { host.holds_container_lock(4711, "nvidia-driver"); }},
      {"installed-by-unknown", Warns, "driver 535.183.01 is installed in /usr/lib/x86_64-linux-gnu",
       [](TestHost& host) { with_library(host, "/usr/lib/x86_64-linux-gnu", "535.183.01"); }},
      {"vgpu-host-driver", Blocks, "gantry vgpu list",
       [](TestHost& host) { host.file("/usr/bin/nvidia-vgpu-mgr", ""); }},
      {"host-driver-beside-container", Blocks, "NVIDIA's driver container refuses",
       [](TestHost& host) {
         host.request.source = Source::NvidiaContainer;
         host.file("/usr/bin/nvidia-uninstall", "");
       }},
      {"driver-will-be-replaced", Notes, "driver 550.90.07 is loaded and will be unloaded",
       [](TestHost& host) { host.loaded(); }},
      {"gpu-in-use", Blocks,
       "pid 4711 (train) of pod default/train has /dev/nvidia0, /dev/nvidiactl open", in_use},
      {"gpu-in-use", Warns, "evict the pod default/train",
       [](TestHost& host) {
         in_use(host);
         host.request.drain = true;
       }},
      {"gpu-users-unknown", Blocks, "SYS_PTRACE",
       [](TestHost& host) {
         host.loaded().file("/proc/modules", "nvidia 56668160 2 - Live 0x0\n");
         host.unreadable = {4711};
       }},
      {"driver-service", Notes, "nvidia-persiste (pid 811) belongs to the driver",
       [](TestHost& host) {
         host.loaded().process(811, "nvidia-persistenced").opens(811, "/dev/nvidia0");
       }},
      {"container-has-old-driver", Warns, "a container of pod default/train (pid 4711, train)",
       [](TestHost& host) {
         in_use(host);
         host.file("/proc/4711/mountinfo",
                   "700 600 8:1 /usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07 "
                   "/usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07 ro - ext4 /dev/sda1 ro\n");
       }},
      {"module-used-by-other", Blocks, "sudo rmmod other_rdma",
       [](TestHost& host) {
         host.loaded().file(
             "/proc/modules",
             "other_rdma 4096 0 - Live 0x0\nnvidia 56668160 1 other_rdma, Live 0x0\n");
       }},
      {"module-busy", Blocks, "sudo fuser -v /dev/nvidia*",
       [](TestHost& host) {
         host.loaded().file("/proc/modules", "nvidia 56668160 3 - Live 0x0\n");
       }},
      // The daemon has one node open: somebody else holds the rest.
      {"module-busy", Blocks, "module nvidia is held 4 times",
       [](TestHost& host) {
         host.loaded().process(811, "nvidia-persistenced").opens(811, "/dev/nvidia0");
         host.file("/proc/modules", "nvidia 56668160 4 - Live 0x0\n");
       }},
      {"kernel-cannot-unload", Blocks, "CONFIG_MODULE_UNLOAD",
       [](TestHost& host) {
         host.loaded().file("/proc/modules", "nvidia 56668160 - - Live 0x0\n");
       }},
  };
}

}  // namespace gantry::preflight
