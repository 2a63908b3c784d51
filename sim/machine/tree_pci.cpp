// SPDX-License-Identifier: Apache-2.0
// /sys/bus/pci and the hierarchy below /sys/devices that it points into.
#include "gpu/model/pci_vendor.hpp"
#include "sim/machine/topology.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::sim {
namespace {

constexpr std::uint64_t kBar64 = 0x4;
constexpr std::uint64_t kBarPrefetch = 0x8;

std::string modalias(const PciFunction& f) {
  return fmt::format("pci:v{:08X}d{:08X}sv{:08X}sd{:08X}bc{:02X}sc{:02X}i{:02X}", f.vendor,
                     f.device, f.subsystem_vendor, f.subsystem_device, f.class_code >> 16U,
                     (f.class_code >> 8U) & 0xffU, f.class_code & 0xffU);
}

std::string uevent(const PciFunction& f) {
  return fmt::format(
      "{}PCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\nPCI_SUBSYS_ID={:04X}:{:04X}\nPCI_SLOT_NAME={}"
      "\nMODALIAS={}\n",
      f.driver.empty() ? "" : fmt::format("DRIVER={}\n", f.driver), f.class_code, f.vendor,
      f.device, f.subsystem_vendor, f.subsystem_device, f.address.sysfs(), modalias(f));
}

std::string_view speed(std::uint32_t generation) {
  constexpr std::array<std::string_view, 8> kSpeeds = {
      "Unknown",        "2.5 GT/s PCIe",  "5.0 GT/s PCIe",  "8.0 GT/s PCIe",
      "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe", "128.0 GT/s PCIe"};
  return kSpeeds[std::min<std::size_t>(generation, kSpeeds.size() - 1)];
}

std::string resource(const PciFunction& f) {
  std::string text;
  for (std::size_t i = 0; i < 7; ++i) {  // six BARs and the ROM
    const Bar bar = i < f.bars.size() ? f.bars[i] : Bar{};
    const auto end = bar.size == 0 ? 0 : bar.start + bar.size - 1;
    text += fmt::format("0x{:016x} 0x{:016x} 0x{:016x}\n", bar.start, end, bar.flags);
  }
  return text;
}

void put16(std::string& space, std::size_t at, std::uint32_t value) {
  space[at] = static_cast<char>(value & 0xffU);
  space[at + 1] = static_cast<char>((value >> 8U) & 0xffU);
}

void put32(std::string& space, std::size_t at, std::uint64_t value) {
  put16(space, at, static_cast<std::uint32_t>(value & 0xffffU));
  put16(space, at + 2, static_cast<std::uint32_t>((value >> 16U) & 0xffffU));
}

void write_details(TreeWriter& out, const Machine& m, const PciFunction& f, const std::string& d) {
  auto value = [&](std::string_view name, std::string_view text, unsigned mode = 0444) {
    out.file(fmt::format("{}/{}", d, name), fmt::format("{}\n", text), mode);
  };
  const auto cpus = local_cpus(m, f.numa_node);
  value("ari_enabled", "0");
  value("broken_parity_status", "0", 0644);
  value("consistent_dma_mask_bits", fmt::to_string(f.dma_bits));
  value("d3cold_allowed", "1", 0644);
  value("dma_mask_bits", fmt::to_string(f.dma_bits));
  value("msi_bus", "1", 0644);
  value("power_state", f.power_state);
  value("power/control", "on", 0644);
  value("power/runtime_status", f.power_state == "D0" ? "active" : "suspended");
  value("local_cpus",
        cpu_mask(parse_cpu_list(cpus).value_or(std::vector<std::uint32_t>{}), cpu_count(m)));
  out.file(d + "/remove", "", 0220);
  out.file(d + "/rescan", "", 0200);
  out.directory(d + "/msi_irqs");
  if (f.link_gen != 0) out.directory(d + "/link");
}

void write_values(TreeWriter& out, const Machine& m, const PciFunction& f, const std::string& d) {
  auto value = [&](std::string_view name, std::string_view text, unsigned mode = 0444) {
    out.file(fmt::format("{}/{}", d, name), fmt::format("{}\n", text), mode);
  };
  const auto cpus = local_cpus(m, f.numa_node);
  // For functions of other vendors only the files that programs read.
  if (f.vendor == model::kNvidiaVendor) {
    write_details(out, m, f, d);
  }

  value("class", fmt::format("0x{:06x}", f.class_code));
  value("device", fmt::format("0x{:04x}", f.device));
  value("driver_override", f.driver_override.empty() ? "(null)" : f.driver_override, 0644);
  value("enable", f.driver.empty() ? "0" : "1", 0644);
  value("irq", fmt::to_string(f.irq));
  value("local_cpulist", cpus);
  value("modalias", modalias(f));
  value("numa_node", fmt::to_string(f.numa_node), 0644);
  if (!f.reset_method.empty()) value("reset_method", f.reset_method, 0644);
  value("revision", fmt::format("0x{:02x}", f.revision));
  value("subsystem_device", fmt::format("0x{:04x}", f.subsystem_device));
  value("subsystem_vendor", fmt::format("0x{:04x}", f.subsystem_vendor));
  value("vendor", fmt::format("0x{:04x}", f.vendor));
  if (!f.serial.empty()) value("serial_number", f.serial, 0400);
  if (f.link_gen != 0) {
    value("current_link_speed", speed(f.link_gen));
    value("current_link_width", fmt::to_string(f.link_width));
    value("max_link_speed", speed(f.link_gen_max));
    value("max_link_width", fmt::to_string(f.link_width_max));
  }
  out.file(d + "/resource", resource(f));
  out.file(d + "/uevent", uevent(f), 0644);
  out.file(d + "/config", config_space(f), 0644);
}

void write_sriov(TreeWriter& out, const PciFunction& f, const std::string& d) {
  if (f.vfs == 0) return;
  auto value = [&](std::string_view name, std::string_view text, unsigned mode = 0444) {
    out.file(fmt::format("{}/{}", d, name), fmt::format("{}\n", text), mode);
  };
  value("sriov_totalvfs", fmt::to_string(f.vfs));
  value("sriov_numvfs", "0", 0644);
  value("sriov_drivers_autoprobe", "1", 0644);
  value("sriov_vf_device", fmt::format("{:x}", f.vf_device));
  value("sriov_offset", fmt::to_string(f.vf_offset));
  value("sriov_stride", fmt::to_string(f.vf_stride));
}

void write_switches(TreeWriter& out, const PciFunction& f, const std::string& d) {
  if (!f.reset_method.empty()) out.file(d + "/reset", "", 0200);
  for (std::size_t i = 0; i < f.bars.size(); ++i) {
    if (f.bars[i].size == 0) continue;
    out.file(fmt::format("{}/resource{}", d, i), "", 0600);
    if ((f.bars[i].flags & kBarPrefetch) != 0)
      out.file(fmt::format("{}/resource{}_wc", d, i), "", 0600);
  }
}

void write_drm(TreeWriter& out, const PciFunction& f, const std::string& d) {
  if (!f.drm_card) return;
  const auto render = 128 + *f.drm_card;
  for (const auto& name : {fmt::format("card{}", *f.drm_card), fmt::format("renderD{}", render)}) {
    const auto at = fmt::format("{}/drm/{}", d, name);
    out.file(at + "/dev", fmt::format("226:{}\n", name.starts_with("card") ? *f.drm_card : render));
    out.relative_link(at + "/device", d);
    out.relative_link(fmt::format("/sys/class/drm/{}", name), at);
  }
  out.device(fmt::format("/dev/dri/card{}", *f.drm_card), {226, *f.drm_card}, 0660, 0, 44);
  out.device(fmt::format("/dev/dri/renderD{}", render), {226, render}, 0660, 0, 44);
  out.link(fmt::format("/dev/dri/by-path/pci-{}-card", f.address.sysfs()),
           fmt::format("../card{}", *f.drm_card));
  out.link(fmt::format("/dev/dri/by-path/pci-{}-render", f.address.sysfs()),
           fmt::format("../renderD{}", render));
}

void write_function(TreeWriter& out, const Machine& m, const PciFunction& f) {
  const auto d = sysfs_directory(m, f);
  write_values(out, m, f, d);
  write_switches(out, f, d);
  write_sriov(out, f, d);
  out.relative_link(d + "/subsystem", "/sys/bus/pci");
  out.relative_link("/sys/bus/pci/devices/" + f.address.sysfs(), d);
  if (!f.firmware_node.empty()) out.link(d + "/firmware_node", f.firmware_node);
  if (!f.driver.empty()) {
    const auto driver = "/sys/bus/pci/drivers/" + f.driver;
    out.directory(driver);
    out.relative_link(d + "/driver", driver);
    out.relative_link(fmt::format("{}/{}", driver, f.address.sysfs()), d);
  }
  if (f.iommu_group) {
    const auto group = fmt::format("/sys/kernel/iommu_groups/{}", *f.iommu_group);
    out.relative_link(fmt::format("{}/devices/{}", group, f.address.sysfs()), d);
    out.file(group + "/type", "DMA\n");
    out.relative_link(d + "/iommu_group", group);
  }
  write_drm(out, f, d);
}

}  // namespace

std::string config_space(const PciFunction& f) {
  const bool pcie = f.link_gen != 0;
  std::string space(pcie ? 4096 : 256, '\0');
  if (f.config_unreadable) return std::string(space.size(), '\xff');
  const bool bridge = f.class_code >> 8U == 0x0604U;
  put16(space, 0x00, f.vendor);
  put16(space, 0x02, f.device);
  put16(space, 0x04, 0x0406);               // memory, bus master, interrupts by message
  put16(space, 0x06, pcie ? 0x0010U : 0U);  // has capabilities
  put32(space, 0x08, f.class_code << 8U | f.revision);
  space[0x0e] = bridge ? '\x01' : '\x00';
  for (std::size_t i = 0; !bridge && i < f.bars.size(); ++i) {
    const Bar& bar = f.bars[i];
    if (bar.size == 0) continue;
    put32(space, 0x10 + 4 * i, bar.start | (bar.flags & (kBar64 | kBarPrefetch)));
    if ((bar.flags & kBar64) != 0 && i < 5) put32(space, 0x14 + 4 * i, bar.start >> 32U);
  }
  if (!bridge) {
    put16(space, 0x2c, f.subsystem_vendor);
    put16(space, 0x2e, f.subsystem_device);
  }
  if (pcie) {
    space[0x34] = 0x40;  // PCI Express capability: type, then link capabilities and status
    space[0x40] = 0x10;
    put16(space, 0x42, bridge ? 0x0062U : 0x0002U);
    put32(space, 0x4c, f.link_gen_max | f.link_width_max << 4U);
    put16(space, 0x52, f.link_gen | f.link_width << 4U);
  }
  return space;
}

void write_pci(TreeWriter& out, const Machine& m) {
  for (const auto* name : {"/sys/bus/pci/devices", "/sys/bus/pci/drivers",
                           "/sys/kernel/iommu_groups", "/sys/class/iommu"}) {
    out.directory(name);
  }
  out.file("/sys/bus/pci/rescan", "", 0200);
  out.file("/sys/bus/pci/drivers_probe", "", 0200);
  for (const auto* function : pci_functions(m)) write_function(out, m, *function);
  std::set<std::string> drivers;
  for (const auto* function : pci_functions(m)) {
    if (!function->driver.empty()) drivers.insert(function->driver);
  }
  if (driver_loaded(m)) drivers.insert("nvidia");
  for (const auto& driver : drivers) {
    for (const auto* name : {"bind", "unbind", "new_id", "remove_id"}) {
      out.file(fmt::format("/sys/bus/pci/drivers/{}/{}", driver, name), "", 0200);
    }
  }
  if (m.iommu) out.directory("/sys/class/iommu/dmar0/devices");
}

}  // namespace gantry::sim
