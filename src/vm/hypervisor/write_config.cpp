// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/write_config.hpp"

#include "base/core/hash.hpp"
#include "base/core/text.hpp"
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::hypervisor {
namespace {

struct HypervisorName {
  Hypervisor hypervisor;
  std::string_view name;
};

constexpr std::array kHypervisors{HypervisorName{Hypervisor::Qemu, "qemu"},
                                  HypervisorName{Hypervisor::Libvirt, "libvirt"},
                                  HypervisorName{Hypervisor::CloudHypervisor, "cloud-hypervisor"},
                                  HypervisorName{Hypervisor::Esxi, "esxi"},
                                  HypervisorName{Hypervisor::Proxmox, "proxmox"},
                                  HypervisorName{Hypervisor::OpenStack, "openstack"}};

// The name becomes part of commands, XML and file names.
bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), plain) &&
         name.front() != '-' && name.front() != '.';
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

Status check_machine(const VmSpec& vm) {
  if (!is_plain_name(vm.name)) {
    return Error(Errc::Invalid,
                 fmt::format("`{}` cannot be the name of a virtual machine; use letters, digits, "
                             "`-`, `_` and `.`, at most 64",
                             vm.name));
  }
  if (!vm.uuid.empty() && !is_uuid(vm.uuid))
    return Error(Errc::Invalid, fmt::format("`{}` is not a UUID; for a new one: uuidgen", vm.uuid));
  if (vm.cpus < 1 || vm.cpus > 4096)
    return Error(Errc::Invalid, fmt::format("{} processors; give 1 to 4096", vm.cpus));
  const auto page = vm.huge_pages == HugePages::Size1G ? kGiB : 2 * kMiB;
  if (vm.memory_bytes < 64 * kMiB || vm.memory_bytes > (1ULL << 46U) ||
      vm.memory_bytes % page != 0) {
    return Error(Errc::Invalid,
                 fmt::format("a memory of {} is not possible; give a multiple of {} from 64 MiB to "
                             "64 TiB",
                             human_bytes(vm.memory_bytes), human_bytes(page)));
  }
  return {};
}

Status check_gpus(const VmSpec& vm) {
  if (vm.gpus.empty()) return Error(Errc::Invalid, "no GPU was named");
  std::set<std::string> seen;
  for (const auto& gpu : vm.gpus) {
    if (!seen.insert(sysfs_device(gpu)).second)
      return Error(Errc::Invalid, fmt::format("{} is named twice", gpu.address.sysfs()));
    if (gpu.attachment == Attachment::VendorVfio && gpu.vgpu_type == "0") {
      return Error(Errc::Invalid, fmt::format("the virtual function {} has no vGPU yet; create one "
                                              "with `gantry vgpu create`",
                                              gpu.address.sysfs()));
    }
  }
  const auto vgpus = std::count_if(vm.gpus.begin(), vm.gpus.end(),
                                   [](const GuestGpu& gpu) { return gpu.is_vgpu(); });
  if (vgpus != 0 && vgpus != static_cast<long>(vm.gpus.size())) {
    return Error(Errc::Invalid,
                 "whole GPUs and vGPUs cannot be mixed in one virtual machine: the guest has one "
                 "driver, and the driver for vGPUs differs from the driver for whole GPUs");
  }
  return {};
}

}  // namespace

std::string_view to_string(Hypervisor hypervisor) {
  for (const auto& known : kHypervisors) {
    if (known.hypervisor == hypervisor) return known.name;
  }
  return "unknown";
}

std::optional<Hypervisor> parse_hypervisor(std::string_view name) {
  for (const auto& known : kHypervisors) {
    if (known.name == name) return known.hypervisor;
  }
  return std::nullopt;
}

std::string sysfs_device(const GuestGpu& gpu) {
  if (gpu.attachment == Attachment::Mdev) return "/sys/bus/mdev/devices/" + gpu.mdev_uuid;
  return "/sys/bus/pci/devices/" + gpu.address.sysfs();
}

std::string vm_uuid(const VmSpec& vm) {
  if (!vm.uuid.empty()) return to_lower(vm.uuid);
  Hash front;
  Hash back;
  front.add(vm.name);
  back.add("gantry vm");
  for (const auto& gpu : vm.gpus) back.add(sysfs_device(gpu));
  back.add(vm.name);
  auto hex = front.text() + back.text();
  hex[12] = '8';  // version 8: its content is up to the program that makes it (RFC 9562)
  hex[16] = 'a';  // variant 1
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20, 12));
}

namespace {

// The steps that the host still needs for one card before the virtual machine starts.
void add_card_notes(const GuestGpu& gpu, WrittenConfig& config) {
  const auto address = gpu.address.sysfs();
  if (gpu.elsewhere) {
    config.notes.push_back(fmt::format(
        "driver, NUMA node and other functions of {} are not known here; run the command on its "
        "host to take them into account",
        address));
    return;
  }
  const bool ready = gpu.is_vgpu() || gpu.driver.find("vfio") != std::string::npos;
  if (!ready) {
    config.notes.push_back(fmt::format(
        "{} is bound to {} now; give it to VFIO before the virtual machine starts: gantry vfio "
        "bind {}",
        address, gpu.driver.empty() ? "no driver" : gpu.driver, address));
  }
  if (!gpu.iommu_group && !gpu.is_vgpu()) {
    config.notes.push_back(
        fmt::format("{} is in no IOMMU group, so it cannot be passed through; for the cause: "
                    "gantry doctor --only iommu.off",
                    address));
  }
  if (!gpu.numa_node) {
    config.notes.push_back(fmt::format(
        "the NUMA node of {} is unknown, so memory is not bound to a node of the host", address));
  }
}

}  // namespace

void add_linux_notes(const VmSpec& vm, WrittenConfig& config) {
  for (const auto& gpu : vm.gpus) add_card_notes(gpu, config);
  if (vm.firmware == Firmware::Bios && mmio_window(vm.gpus) > kDefaultWindow) {
    config.notes.emplace_back(
        "BIOS firmware may find no addresses for BARs of this size; use --firmware efi");
  }
}

Result<WrittenConfig> write_config(Hypervisor hypervisor, const VmSpec& vm) {
  GANTRY_CHECK(check_machine(vm));
  if (!vm.vgpu_profile.empty()) {
    if (hypervisor != Hypervisor::Esxi) {
      return Error(Errc::Unsupported,
                   "--vgpu is for esxi; elsewhere create the vGPU with `gantry vgpu create` and "
                   "name its UUID or its virtual function instead of a GPU");
    }
    return write_esxi(vm);
  }
  GANTRY_CHECK(check_gpus(vm));
  if (mmio_window(vm.gpus) > kLargestWindow) {
    return Error(Errc::Unsupported,
                 fmt::format("the GPUs need a window of {}; OVMF has at most {}",
                             human_bytes(mmio_window(vm.gpus)), human_bytes(kLargestWindow)));
  }
  switch (hypervisor) {
    case Hypervisor::Qemu: return write_qemu(vm);
    case Hypervisor::Libvirt: return write_libvirt(vm);
    case Hypervisor::CloudHypervisor: return write_cloud_hypervisor(vm);
    case Hypervisor::Esxi: return write_esxi(vm);
    case Hypervisor::Proxmox: return write_proxmox(vm);
    case Hypervisor::OpenStack: return write_openstack(vm);
  }
  return Error(Errc::Internal, "unknown hypervisor");
}

}  // namespace gantry::hypervisor
