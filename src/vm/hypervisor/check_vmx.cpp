// SPDX-License-Identifier: Apache-2.0
// The rules for ESXi; docs/esxi.md names the source of each.
#include "base/core/text.hpp"
#include "vm/hypervisor/checks_internal.hpp"
#include "vm/hypervisor/known_cards.hpp"
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/vgpu_profile.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

constexpr int kMostDevices = 128;  // ESXi has 16 by default, up to 32

class VmxCheck {
 public:
  explicit VmxCheck(const VmxFile& file) : file_(file) {}

  CheckedFile run() {
    find_devices();
    if (checked_.gpus + checked_.vgpus + checked_.unknown == 0) {
      add({.id = "no-gpu",
           .what = "the file passes no GPU to the virtual machine",
           .why = "no pciPassthruN.present is TRUE",
           .add = "gantry vm config --for esxi h200@0000:3b:00.0"});
      return std::move(checked_);
    }
    if (checked_.gpus > 0 && checked_.vgpus > 0) add(mixed_finding(vgpu_line_));
    check_layout();
    check_mmio();
    check_reservation();
    check_hidden();
    return std::move(checked_);
  }

 private:
  void add(Finding finding) { checked_.findings.push_back(std::move(finding)); }

  void find_devices() {
    for (int i = 0; i < kMostDevices; ++i) {
      const auto key = fmt::format("pciPassthru{}.", i);
      if (!file_.is_true(key + "present")) continue;
      const auto profile = file_.value(key + "vgpu");
      if (!profile.empty() || to_lower(file_.value(key + "virtualDev")) == "vmiop") {
        add_vgpu(key, profile);
      } else {
        add_card(key);
      }
    }
  }

  void add_vgpu(const std::string& key, const std::string& name) {
    ++checked_.vgpus;
    vgpu_line_ = file_.line(key + "present");
    const auto profile = parse_vgpu_profile(name);
    if (profile.ok()) {
      cards_.push_back(gpu_of_profile(*profile));
      return;
    }
    add({.id = "vgpu-profile",
         .what = name.empty() ? key + "vgpu is missing" : fmt::format("{}vgpu is `{}`", key, name),
         .why = "a vGPU needs the name of its type, which the vSphere client lists",
         .add = key + "vgpu = \"grid_t4-8q\"",
         .line = file_.line(key + "vgpu")});
  }

  void add_card(const std::string& key) {
    const auto vendor = parse_u64(file_.value(key + "vendorId"), 0);
    const auto device = parse_u64(file_.value(key + "deviceId"), 0);
    if (vendor && *vendor != 0x10de) return;  // a network card, say
    card_keys_.push_back(key);
    const auto card = device && *device <= 0xffff
                          ? card_by_device_id(static_cast<std::uint16_t>(*device))
                          : std::nullopt;
    if (card) {
      ++checked_.gpus;
      cards_.push_back(*card);
      return;
    }
    if (vendor) {
      ++checked_.gpus;
    } else {
      ++checked_.unknown;
    }
    unknown_line_ = file_.line(key + "present");
    all_known_ = false;
  }

  void check_layout() {
    const bool efi = to_lower(file_.value("firmware")) == "efi";
    const bool acpi = to_lower(file_.value("chipset.motherboardLayout")) == "acpi";
    const bool small = all_known_ && !esxi_needs_64bit(cards_);
    if (!efi) {
      add({.id = "firmware",
           .severity = small && !acpi ? Severity::Advice : Severity::Problem,
           .what = "the firmware is not EFI",
           .why = acpi ? "the virtual machine does not start: \"ACPI motherboard layout requires "
                         "EFI\""
                  : small ? "chipset.motherboardLayout = \"acpi\" and large GPUs need it. A guest "
                            "that was installed with BIOS must be installed again"
                          : "the BIOS cannot map the memory of a large GPU. A guest that was "
                            "installed with BIOS must be installed again",
           .add = "firmware = \"efi\"",
           .line = file_.line("firmware")});
    }
    const auto hardware = parse_u64(file_.value("virtualHW.version"));
    if (!acpi) {
      add({.id = "numa",
           .severity = Severity::Advice,
           .what = "chipset.motherboardLayout is not \"acpi\"",
           .why = std::string(kNumaWhy),
           .add = "chipset.motherboardLayout = \"acpi\"",
           .line = file_.line("chipset.motherboardLayout")});
    } else if (hardware && *hardware < 20) {
      add({.id = "hardware-version",
           .severity = Severity::Advice,
           .what = fmt::format("the virtual hardware is version {}", *hardware),
           .why = "chipset.motherboardLayout = \"acpi\" needs version 20 (ESXi 8.0)",
           .add = "virtualHW.version = \"20\"",
           .line = file_.line("virtualHW.version")});
    }
    if (acpi) check_node();
  }

  // Of the first card that has no number.
  void check_node() {
    for (const auto& key : card_keys_) {
      const auto value = file_.value(key + "numaNode");
      if (parse_u64(value)) continue;
      return add({.id = "numa-node",
                  .severity = Severity::Advice,
                  .what = value.empty() ? key + "numaNode is not set"
                                        : fmt::format("{}numaNode is `{}`", key, value),
                  .why = "it says on which NUMA node of the virtual machine the GPU is; without it "
                         "the guest may show -1. Not verified on ESXi: the vSphere API has "
                         "numaNode of a device, and the client has it in CPU Topology",
                  .add = key + "numaNode = \"0\"",
                  .line = file_.line(key + "numaNode")});
    }
  }

  void check_mmio() {
    if (!all_known_) {
      add({.id = "unknown-device",
           .severity = Severity::Advice,
           .what = "the file has a card whose memory Gantry does not know",
           .why = "pciPassthru.64bitMMIOSizeGB is the memory of all GPUs in GB, rounded up to a "
                  "power of two, then doubled; known cards: " +
                  known_card_names(),
           .add = "",
           .line = unknown_line_});
    }
    const bool wanted = esxi_needs_64bit(cards_);
    if (wanted && !file_.is_true("pciPassthru.use64bitMMIO")) {
      add({.id = "use64bitmmio",
           .what = "pciPassthru.use64bitMMIO is not TRUE",
           .why = "ESXi maps at most 16 GB without it; the virtual machine does not start: "
                  "\"Module 'DevicePowerOn' power on failed\"",
           .add = "pciPassthru.use64bitMMIO = \"TRUE\"",
           .line = file_.line("pciPassthru.use64bitMMIO")});
    }
    const auto needed = esxi_window_gb(cards_);
    const auto set = parse_u64(file_.value("pciPassthru.64bitMMIOSizeGB"));
    if (!wanted || (set && *set >= needed)) return;
    add({.id = "mmio-window",
         .what = fmt::format("pciPassthru.64bitMMIOSizeGB is {}; these GPUs need {}",
                             set ? fmt::to_string(*set) : "not set", needed),
         .why = "the memory of all GPUs in GB, rounded up to a power of two, then doubled; with "
                "less the virtual machine does not start",
         .add = fmt::format("pciPassthru.64bitMMIOSizeGB = \"{}\"", needed),
         .line = file_.line("pciPassthru.64bitMMIOSizeGB")});
  }

  void check_reservation() {
    const auto memory = parse_u64(file_.value("memSize"));
    const auto reserved = parse_u64(file_.value("sched.mem.min"));
    if (file_.is_true("sched.mem.pin")) return;
    if (memory && reserved && *reserved >= *memory) return;
    add({.id = "memory-reservation",
         .what = "the guest's memory is not fully reserved",
         .why = "the GPU writes to it at any time, so ESXi may not swap it; the virtual machine "
                "does not start",
         .add = fmt::format("sched.mem.min = \"{}\"  and  sched.mem.pin = \"TRUE\"",
                            memory ? fmt::to_string(*memory) : "the value of memSize"),
         .line = file_.line("sched.mem.min")});
  }

  void check_hidden() {
    if (to_lower(file_.value("hypervisor.cpuid.v0")) != "false") return;
    add({.id = "hidden-hypervisor",
         .severity = Severity::Advice,
         .what = "hypervisor.cpuid.v0 is FALSE",
         .why = "it hid the hypervisor from old drivers of consumer cards; data-centre cards never "
                "needed it, and without it Linux uses VMware's clock",
         .add = "remove the line",
         .line = file_.line("hypervisor.cpuid.v0")});
  }

  const VmxFile& file_;
  CheckedFile checked_;
  std::vector<GuestGpu> cards_;
  std::vector<std::string> card_keys_;  // "pciPassthru0.", without vGPUs
  bool all_known_ = true;
  int unknown_line_ = 0;
  int vgpu_line_ = 0;
};

}  // namespace

CheckedFile check_vmx(const VmxFile& file) {
  return VmxCheck(file).run();
}

}  // namespace gantry::hypervisor
