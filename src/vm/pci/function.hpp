// SPDX-License-Identifier: Apache-2.0
// The PCI functions of a machine as sysfs shows them: plain values, read once. Nothing here writes.
#pragma once

#include "gpu/model/pci_address.hpp"
#include "gpu/model/pci_vendor.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::pci {

// The kind of a function, from its class code.
enum class Kind : std::uint8_t { Gpu, NvSwitch, Audio, Usb, Ucsi, Bridge, Other };
std::string_view to_string(Kind kind);  // "GPU", "NVSwitch", "audio", "USB controller", ...

// Which card is in a slot. Two equal cards have equal ids; only the serial number tells them apart,
// and not every card has one.
struct CardId {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystem_vendor = 0;
  std::uint16_t subsystem_device = 0;
  std::uint8_t revision = 0;
  std::string serial;  // "48-b0-2d-01-02-03-04-05"; "" if the card has none or it cannot be read
  bool operator==(const CardId&) const = default;
};
std::string to_string(const CardId& id);  // "10de:2335 subsystem 10de:18bf revision a1"

// Returns true unless a value that both know differs. Only root can read the serial number on most
// kernels, so one that is missing on either side decides nothing.
bool same_card(const CardId& a, const CardId& b);

struct Bar {
  std::uint64_t start = 0;
  std::uint64_t size = 0;  // 0: this BAR does not exist
  std::uint64_t flags = 0;
  bool is_memory() const { return (flags & 0x200U) != 0; }
  bool is_64bit() const { return (flags & 0x100000U) != 0; }
  bool operator==(const Bar&) const = default;
};

// The SR-IOV capability of a physical function.
struct Sriov {
  std::uint32_t total_vfs = 0;
  std::uint32_t num_vfs = 0;           // that are enabled
  std::uint16_t vf_device = 0;         // the device id that its VFs have
  bool drivers_autoprobe = true;       // a new VF gets a driver at once
  std::vector<model::PciAddress> vfs;  // by their index virtfn0, virtfn1, ...
  bool operator==(const Sriov&) const = default;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): its members are grouped by meaning
struct Function {
  model::PciAddress address;
  std::string path;  // resolved: "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0"
  CardId id;
  std::uint32_t class_code = 0;  // 0x030200
  std::string modalias;

  std::string driver;                // "" if no driver is bound
  std::string driver_override;       // "" if there is none; only read for NVIDIA's functions
  bool has_driver_override = false;  // the kernel has the file (Linux 3.16 and later)
  // The kernel holds the lock of the device: a bind or unbind is under way and may never end.
  // driver_override and sriov->num_vfs are unknown then. Only read for NVIDIA's functions.
  bool locked = false;

  std::optional<int> iommu_group;
  std::optional<int> numa_node;  // nullopt for sysfs's -1
  std::string cpu_list;          // local_cpulist

  std::vector<Bar> bars;  // always 6, in their order
  std::optional<Bar> rom;

  bool boot_vga = false;                   // the firmware's display
  std::vector<std::string> drm_nodes;      // "card1", "renderD129"
  std::vector<std::string> sound_nodes;    // "controlC1", "pcmC1D3p", below /dev/snd
  bool can_reset = false;                  // the kernel has a way to reset it
  std::vector<std::string> reset_methods;  // in the order in which they are tried; may be unknown
  std::string power_state;                 // "D0", "D3cold"; "" if unknown
  bool answers = true;                     // false: its configuration space reads all ones

  // Device links: a GPU with sound or USB-C is the supplier of those functions.
  std::vector<model::PciAddress> consumers;
  std::vector<model::PciAddress> suppliers;

  std::optional<Sriov> sriov;               // of a physical function
  std::optional<model::PciAddress> physfn;  // of a virtual function
  bool vendor_vfio = false;                 // a VF whose vGPU is made through nvidia/ files
  unsigned mdevs = 0;                       // mediated devices, such as vGPUs, on this function
  std::string vfio_device;                  // "vfio0": /dev/vfio/devices/vfio0 (iommufd)

  Kind kind() const;
  bool is_nvidia() const { return id.vendor == model::kNvidiaVendor; }
  bool is_gpu() const { return is_nvidia() && kind() == Kind::Gpu; }
  bool is_nvswitch() const { return is_nvidia() && kind() == Kind::NvSwitch; }
  std::uint64_t bar_bytes() const;  // the sum of its memory BARs
  bool operator==(const Function&) const = default;
};

// Functions of one slot are one card: 0000:3b:00.0 and 0000:3b:00.1.
bool same_slot(const model::PciAddress& a, const model::PciAddress& b);

// The driver gives a device to user space: vfio-pci and its variants, such as nvgrace_gpu_vfio_pci.
bool is_vfio_driver(std::string_view driver);

struct IommuGroup {
  int number = 0;
  std::string type;  // "DMA", "DMA-FQ", "identity"; "" if unknown
  std::vector<model::PciAddress> members;
  bool operator==(const IommuGroup&) const = default;
};

// All functions of all vendors.
struct Bus {
  std::vector<Function> functions;  // by address
  std::vector<IommuGroup> groups;   // by number
  std::vector<std::string> notes;   // what could not be read, one sentence each

  const Function* find(const model::PciAddress& address) const;
  const IommuGroup* group(int number) const;
  bool operator==(const Bus&) const = default;
};

}  // namespace gantry::pci
