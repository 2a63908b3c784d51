// SPDX-License-Identifier: Apache-2.0
// The input of a hypervisor's configuration, as plain values: the GPUs that a virtual machine
// gets and the machine itself.
#pragma once

#include "base/core/bytes.hpp"
#include "gpu/model/pci_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::hypervisor {

enum class Hypervisor : std::uint8_t { Qemu, Libvirt, CloudHypervisor, Esxi, Proxmox, OpenStack };

std::string_view to_string(Hypervisor hypervisor);  // "cloud-hypervisor", as --for takes it
std::optional<Hypervisor> parse_hypervisor(std::string_view name);

// How the GPU reaches the virtual machine.
enum class Attachment : std::uint8_t {
  Passthrough,  // the whole card, by a vfio driver
  Mdev,         // a vGPU as a mediated device
  VendorVfio    // a vGPU on an SR-IOV virtual function that stays bound to NVIDIA's driver
};

struct MemoryBar {
  int index = 0;
  std::uint64_t bytes = 0;
  bool is_64bit = false;
  bool operator==(const MemoryBar&) const = default;
};

struct GuestGpu {
  model::PciAddress address;  // an mdev: the address of its parent
  std::string name;           // "NVIDIA H200"; "" when unknown
  std::uint16_t vendor = 0x10de;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0x030200;
  std::optional<std::uint64_t> memory_bytes;
  std::vector<MemoryBar> bars;
  // The card's other functions (audio, USB). They share its IOMMU group and go with it.
  std::vector<model::PciAddress> companions;
  std::optional<int> iommu_group;
  std::optional<int> numa_node;  // of the host; nullopt: sysfs says -1
  std::string cpu_list;          // the host's processors near it; "" when unknown
  std::string driver;            // that is bound to it now; "" when none
  bool sriov = false;            // the card has virtual functions
  bool elsewhere = false;        // a card of another machine: only its product is known
  Attachment attachment = Attachment::Passthrough;
  std::string mdev_uuid;
  std::string vgpu_type;  // an mdev: "nvidia-592"; a virtual function: "1104", "0" without a vGPU
  bool operator==(const GuestGpu&) const = default;

  bool is_display() const { return (class_code >> 8U) == 0x0300U; }
  bool is_vgpu() const { return attachment != Attachment::Passthrough; }
};

enum class HugePages : std::uint8_t { None, Size2M, Size1G };
enum class Firmware : std::uint8_t { Efi, Bios };

struct VmSpec {
  std::string name = "gpu-vm";
  std::string uuid;  // "": derived from the name and the GPUs
  std::uint64_t memory_bytes = 16 * kGiB;
  int cpus = 8;
  HugePages huge_pages = HugePages::None;
  Firmware firmware = Firmware::Efi;
  bool iommufd = false;      // QEMU 9.0 and later
  std::string vgpu_profile;  // ESXi: "grid_t4-8q"; "" for passthrough
  std::vector<GuestGpu> gpus;
};

}  // namespace gantry::hypervisor
