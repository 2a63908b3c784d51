// SPDX-License-Identifier: Apache-2.0
// Proxmox VE: commands of qm. VMID is the number of a virtual machine that exists.
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

// "0000:3b:00" gives all functions of the card.
std::string slot_of(const model::PciAddress& at) {
  const auto whole = at.sysfs();
  return whole.substr(0, whole.rfind('.'));
}

Result<std::string> hostpci(const GuestGpu& gpu) {
  switch (gpu.attachment) {
    case Attachment::Passthrough:
      return (gpu.companions.empty() ? gpu.address.sysfs() : slot_of(gpu.address)) + ",pcie=1";
    case Attachment::Mdev:
      // Proxmox creates the mediated device itself when the VM starts, so it gets parent and type.
      return fmt::format("{},mdev={},pcie=1", gpu.address.sysfs(), gpu.vgpu_type);
    case Attachment::VendorVfio: break;
  }
  return Error(Errc::Unsupported,
               fmt::format("{} is a virtual function with a vendor-specific VFIO driver; Gantry "
                           "does not know how Proxmox takes one. Use --for qemu",
                           gpu.address.sysfs()));
}

}  // namespace

Result<WrittenConfig> write_proxmox(const VmSpec& vm) {
  if (vm.gpus.size() > 16)
    return Error(Errc::Unsupported, "Proxmox has hostpci0 to hostpci15; name at most 16 GPUs");
  if (vm.iommufd)
    return Error(Errc::Unsupported, "--iommufd is for qemu and libvirt only; leave it out");
  GANTRY_TRY(const auto nodes, guest_nodes(vm));
  WrittenConfig config;
  auto& text = config.text;
  text = fmt::format("qm set \"$VMID\" --machine q35 --bios {} --cpu host --balloon 0\n",
                     vm.firmware == Firmware::Efi ? "ovmf" : "seabios");
  text += fmt::format("qm set \"$VMID\" --sockets 1 --cores {} --memory {} --numa 1\n", vm.cpus,
                      vm.memory_bytes / kMiB);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += fmt::format("qm set \"$VMID\" --numa{} cpus={},memory={}", i, nodes[i].cpus(),
                        nodes[i].memory_bytes / kMiB);
    if (nodes[i].host_node) text += fmt::format(",hostnodes={},policy=bind", *nodes[i].host_node);
    text += "\n";
  }
  if (vm.huge_pages == HugePages::Size1G) text += "qm set \"$VMID\" --hugepages 1024\n";
  if (vm.huge_pages == HugePages::Size2M) text += "qm set \"$VMID\" --hugepages 2\n";
  const auto window = mmio_window(vm.gpus);
  if (window > kDefaultWindow && vm.firmware == Firmware::Efi) {
    text += fmt::format("qm set \"$VMID\" --args '-fw_cfg name=opt/ovmf/X-PciMmio64Mb,string={}'\n",
                        window / kMiB);
  }
  for (std::size_t i = 0; i < vm.gpus.size(); ++i) {
    GANTRY_TRY(const auto value, hostpci(vm.gpus[i]));
    text += fmt::format("qm set \"$VMID\" --hostpci{} {}\n", i, value);
  }
  config.notes = {"set VMID first: VMID=100",
                  "EFI firmware needs a disk for its variables: qm set \"$VMID\" --efidisk0 "
                  "local-lvm:1,efitype=4m",
                  "Proxmox puts the GPUs on a bus without a NUMA node, so the guest shows -1; "
                  "`gantry doctor` in the guest says what to do about it"};
  add_linux_notes(vm, config);
  return config;
}

}  // namespace gantry::hypervisor
