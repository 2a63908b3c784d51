// SPDX-License-Identifier: Apache-2.0
// QEMU: a shell script with the locked-memory limit and the command line.
#include "base/sys/shell_command.hpp"
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

constexpr int kBusesOfNode = 32;  // bus numbers for one expander bus and its root ports

class QemuArguments {
 public:
  void add(std::string_view option, const std::string& value) {
    text_ += fmt::format(" \\\n  {} {}", option, sys::shell_word(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string memory_backend(const VmSpec& vm, const GuestNode& node, std::size_t number) {
  auto text = fmt::format("memory-backend-memfd,id=mem{},size={}M,share=on,prealloc=on", number,
                          node.memory_bytes / kMiB);
  if (vm.huge_pages == HugePages::Size1G) text += ",hugetlb=on,hugetlbsize=1G";
  if (vm.huge_pages == HugePages::Size2M) text += ",hugetlb=on,hugetlbsize=2M";
  if (node.host_node) text += fmt::format(",host-nodes={},policy=bind", *node.host_node);
  return text;
}

void add_memory(const VmSpec& vm, const std::vector<GuestNode>& nodes, QemuArguments& out) {
  out.add("-m", fmt::format("{}M", vm.memory_bytes / kMiB));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out.add("-object", memory_backend(vm, nodes[i], i));
    out.add("-numa", fmt::format("node,nodeid={},cpus={},memdev=mem{}", i, nodes[i].cpus(), i));
  }
}

void add_firmware(const VmSpec& vm, QemuArguments& out) {
  if (vm.firmware == Firmware::Bios) return;
  out.add("-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd");
  // snapshot: the package's file stays as it is, and the machine starts without a copy of it.
  out.add("-drive", "if=pflash,format=raw,unit=1,snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.fd");
}

void add_window(const VmSpec& vm, QemuArguments& out) {
  const auto window = mmio_window(vm.gpus);
  if (window <= kDefaultWindow) return;
  out.add("-global", fmt::format("q35-pcihost.pci-hole64-size={}G", window / kGiB));
  if (vm.firmware == Firmware::Efi) {
    out.add("-fw_cfg", fmt::format("name=opt/ovmf/X-PciMmio64Mb,string={}", window / kMiB));
  }
}

// The address of a function on the host, or its directory where QEMU must not look for vfio-pci.
std::string qemu_source(const GuestGpu& gpu) {
  return gpu.is_vgpu() ? "sysfsdev=" + sysfs_device(gpu) : "host=" + gpu.address.sysfs();
}

void add_gpu(const VmSpec& vm, const GuestGpu& gpu, std::size_t number, QemuArguments& out) {
  const std::string iommufd = vm.iommufd ? ",iommufd=iommufd0" : "";
  // A card without a display needs no video BIOS in the guest.
  const std::string rom = gpu.is_display() ? "" : ",rombar=0";
  const std::string several = gpu.companions.empty() ? "" : ",multifunction=on";
  out.add("-device", fmt::format("vfio-pci,id=gpu{},{},bus=gpuport{},addr=0.0{}{}{}", number,
                                 qemu_source(gpu), number, several, rom, iommufd));
  int function = 0;
  for (const auto& companion : gpu.companions) {
    out.add("-device", fmt::format("vfio-pci,host={},bus=gpuport{},addr=0.{}{}", companion.sysfs(),
                                   number, ++function, iommufd));
  }
}

void add_gpus(const VmSpec& vm, const std::vector<GuestNode>& nodes, QemuArguments& out) {
  if (vm.iommufd) out.add("-object", "iommufd,id=iommufd0");
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    // The expander bus has the ACPI _PXM from which the guest learns the GPU's node.
    out.add("-device", fmt::format("pxb-pcie,id=gpubus{},bus=pcie.0,bus_nr={},numa_node={}", node,
                                   kBusesOfNode * (static_cast<int>(node) + 1), node));
    for (const auto gpu : nodes[node].gpus) {
      out.add("-device", fmt::format("pcie-root-port,id=gpuport{},bus=gpubus{},chassis={},slot={}",
                                     gpu, node, gpu + 1, gpu + 1));
      add_gpu(vm, vm.gpus[gpu], gpu, out);
    }
  }
}

}  // namespace

Result<WrittenConfig> write_qemu(const VmSpec& vm) {
  GANTRY_TRY(const auto nodes, guest_nodes(vm));
  QemuArguments out;
  out.add("-name", vm.name);
  out.add("-uuid", vm_uuid(vm));
  out.add("-machine", "q35,accel=kvm");
  out.add("-cpu", "host,host-phys-bits=on");
  out.add("-smp", fmt::format("{}", vm.cpus));
  add_memory(vm, nodes, out);
  add_firmware(vm, out);
  add_window(vm, out);
  out.add("-nodefaults -display", "none");
  out.add("-serial", "mon:stdio");
  add_gpus(vm, nodes, out);
  WrittenConfig config;
  config.text = fmt::format("#!/bin/sh\nulimit -l {}\nexec qemu-system-x86_64{}\n",
                            locked_memory(vm.memory_bytes) / 1024, out.text());
  config.notes.emplace_back("add a disk and a network card to the command");
  add_linux_notes(vm, config);
  return config;
}

}  // namespace gantry::hypervisor
