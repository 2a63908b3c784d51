// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/host_for_test.hpp"
#include "vm/pci/vgpu_config_for_test.hpp"

namespace gantry::preflight {
namespace {

using enum Severity;

void download(TestHost& host) {
  host.request.run_file.clear();
  host.sources.files.clear();
}

}  // namespace

std::vector<FindingCase> request_cases() {
  return {
      {"version-missing", Blocks, "--version 580.159.04",
       [](TestHost& host) {
         host.request.version.clear();
         host.request.run_file = "/root/driver.run";
       }},
      {"version-invalid", Blocks, "`latest` is not a version",
       [](TestHost& host) { host.request.version = "latest"; }},
      {"version-is-branch", Blocks, "580 is a branch of the driver",
       [](TestHost& host) { host.request.version = "580"; }},
      {"run-file-other-cpu", Blocks, "for aarch64 processors, and this machine has x86_64",
       [](TestHost& host) { host.request.run_file = "/root/NVIDIA-Linux-aarch64-580.159.04.run"; }},
      {"run-file-other-version", Blocks, "has driver 535.183.01, and 580.159.04 was asked for",
       [](TestHost& host) { host.request.run_file = "/root/NVIDIA-Linux-x86_64-535.183.01.run"; }},
      {"vgpu-host-driver-requested", Blocks, "is the driver of a vGPU host",
       [](TestHost& host) {
         host.request.run_file = "/root/NVIDIA-Linux-x86_64-580.159.04-vgpu-kvm.run";
       }},
      {"file-missing", Blocks, "there is no file /root/fix.patch",
       [](TestHost& host) {
         host.request.patch = "/root/fix.patch";
         host.sources.files.push_back(host.request.patch);
       }},
      {"source-unclear", Blocks, "both a local archive and a URL",
       [](TestHost& host) { host.request.url = "https://example.org/d.run"; }},
      {"download-without-digest", Blocks, "--trust-download-without-digest", download},
      {"digest-invalid", Blocks, "",
       [](TestHost& host) {
         download(host);
         host.request.sha256 = "beef";
       }},
      {"signing-incomplete", Blocks, "a signing key was given without a certificate",
       [](TestHost& host) { host.request.sign_key = "pkcs11:token=hsm"; }},
      {"signing-key-on-node", Warns, "the private key /root/mok.priv is on this machine",
       [](TestHost& host) {
         host.request.sign_key = "/root/mok.priv";
         host.request.sign_certificate = "/root/mok.der";
       }},
      {"distribution-unsupported", Blocks, "",
       [](TestHost& host) {
         host.request.source = Source::Packages;
         host.file("/etc/os-release", "ID=haiku\nVERSION_ID=1\n");
       }},
  };
}

std::vector<FindingCase> gpu_cases() {
  return {
      {"wsl", Blocks, "install the driver in Windows",
       [](TestHost& host) { host.file("/dev/dxg", ""); }},
      {"no-gpu", Blocks, "this machine has no NVIDIA GPU",
       [](TestHost& host) { host.gpu_file("vendor", "0x8086\n"); }},
      {"gpus-for-virtual-machines", Blocks, "gantry vfio release",
       [](TestHost& host) { host.gpu_driver("vfio-pci"); }},
      {"gpu-for-virtual-machines", Notes, "0000:3b:00.0 (Tesla T4, Turing) is reserved",
       [](TestHost& host) {
         host = TestHost("", {"t4", "t4"});
         host.gpu_driver("vfio-pci");
       }},
      {"gpu-lost", Blocks, "0000:3b:00.0 (Tesla T4, Turing) has fallen off the bus",
       [](TestHost& host) { host.gpu_file("config", std::string(256, '\xff')); }},
      {"gpu-unknown", Warns, "the generation of 0000:3b:00.0 (10de:3021) is not known",
       [](TestHost& host) { host.gpu_file("device", "0x3021\n"); }},
      {"branch-unsupported", Blocks, "choose a version of branch 470 (branches 304 to 470",
       [](TestHost& host) { host = TestHost("", {"k2000"}); }},
      {"flavour-unsupported", Blocks, "--flavour proprietary",
       [](TestHost& host) {
         host = TestHost("", {"k620"});
         host.request.flavour = Flavour::Open;
       }},
      {"flavour", Notes, "the proprietary kernel modules fit the GPUs",
       [](TestHost& host) { host.request.flavour = Flavour::Proprietary; }},
      {"vgpu-needs-guest-driver", Blocks, "--source grid",
       [](TestHost& host) { host.gpu_file("config", pci::vgpu_config_space()); }},
      {"vgpu-host-older", Warns, "has driver 550.54.16, older than 580.159.04",
       [](TestHost& host) {
         host.gpu_file("config", pci::vgpu_config_space());
         host.request.source = Source::Grid;
       }},
      {"guest-driver-on-whole-gpu", Blocks, "use the standard driver, --source run",
       [](TestHost& host) { host.request.source = Source::Grid; }},
      {"fabric-manager", Notes, "4 NVSwitches: the fabric manager of the same version is needed",
       [](TestHost& host) { host = TestHost("h200x8-fabric"); }},
      {"nouveau-holds-gpu", Blocks, "options nouveau modeset=0",
       [](TestHost& host) { host.gpu_driver("nouveau"); }},
      {"nouveau-loaded", Warns, "nouveau is loaded, but holds no GPU",
       [](TestHost& host) { host.file("/proc/modules", "nouveau 1949696 0 - Live 0x0\n"); }},
      {"nova-holds-gpu", Blocks, "echo blacklist nova_core",
       [](TestHost& host) {
         host.gpu_driver("NovaCore");
         host.link("/sys/bus/pci/drivers/NovaCore/module", "../../../../module/nova_core");
       }},
      {"other-driver-holds-gpu", Blocks, "the driver pci-stub holds 0000:3b:00.0",
       [](TestHost& host) { host.gpu_driver("pci-stub"); }},
      {"framebuffer-console", Warns, "simple-framebuffer shows the console on 0000:3b:00.0",
       [](TestHost& host) {
         host.gpu_file("boot_vga", "1\n");
         host.file("/sys/bus/platform/drivers/simple-framebuffer/simple-framebuffer.0", "");
       }},
  };
}

}  // namespace gantry::preflight
