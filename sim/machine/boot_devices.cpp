// SPDX-License-Identifier: Apache-2.0
// PCI buses and functions as QEMU's -device arguments.
#include "base/core/text.hpp"
#include "sim/machine/boot_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

namespace gantry::sim {
namespace {

constexpr std::uint64_t kMib = 1ULL << 20U;
constexpr std::uint64_t kSmallBar = 32 * kMib;     // keeps its size
constexpr std::uint64_t kWideBar = 0x4;            // of Bar::flags: 64-bit
constexpr std::uint64_t kVfNarrowBar = 64 * 1024;  // of sim/pci/gpu.c
constexpr std::uint64_t kVfWideBar = kMib;
constexpr unsigned kFirstExpanderSlot = 0x1e;

std::string root_id(const BootBus& bus) {
  return bus.main ? "pcie.0" : fmt::format("root{:02x}", bus.number);
}

std::string node_id(const BootNode& node) {
  return fmt::format("{}{:02x}-{:02x}-{}", node.kind == BootKind::Endpoint ? "function" : "port",
                     node.booted.bus, node.booted.device, node.booted.function);
}

std::string size_text(std::uint64_t bytes) {
  if (bytes % kMib == 0) return fmt::format("{}M", bytes / kMib);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes / 1024) : fmt::to_string(bytes);
}

std::uint64_t shrunk(std::uint64_t size, std::uint32_t divisor) {
  if (size <= kSmallBar) return std::bit_ceil(size);
  return std::bit_ceil(std::max(kSmallBar, size / divisor));
}

std::string bar_arguments(const PciFunction& function, std::uint32_t divisor) {
  std::string text;
  unsigned wide = 0;
  for (std::size_t i = 0; i < function.bars.size(); ++i) {
    const Bar& bar = function.bars[i];
    if (bar.size == 0) continue;
    text += fmt::format(",bar{}={}", i, size_text(shrunk(bar.size, divisor)));
    if ((bar.flags & kWideBar) != 0) wide |= 1U << i;
  }
  if (text.find(",bar0=") == std::string::npos) text = ",bar0=16K" + text;  // it has the registers
  return wide == 0 ? text : text + fmt::format(",wide-bars=0x{:x}", wide);
}

// "04-56-14-49-d9-2d-b0-48" as the number that configuration space has.
std::optional<std::string> serial_number(std::string_view serial) {
  std::string digits;
  for (const char c : serial) {
    if (c != '-') digits += c;
  }
  const bool valid = digits.size() == 16 && parse_u64(digits, 16).has_value();
  if (!valid) return std::nullopt;
  return "0x" + digits;
}

std::string endpoint_arguments(const PciFunction& f, std::uint32_t divisor) {
  auto text = fmt::format(
      ",vendor-id=0x{:04x},device-id=0x{:04x},class-id=0x{:04x},prog-if=0x{:x},revision=0x{:x}"
      ",sub-vendor-id=0x{:04x},sub-device-id=0x{:04x}",
      f.vendor, f.device, f.class_code >> 8U, f.class_code & 0xffU, f.revision, f.subsystem_vendor,
      f.subsystem_device);
  if (f.chip_id != 0) text += fmt::format(",boot-id=0x{:08x}", f.chip_id);
  text += bar_arguments(f, divisor);
  if (!contains(f.reset_method, "flr")) text += ",flr=off";
  if (const auto serial = serial_number(f.serial))
    text += fmt::format(",serial-number={}", *serial);
  if (f.vfs != 0)
    text += fmt::format(",vfs={},vf-device-id=0x{:04x},vf-offset={},vf-stride={}", f.vfs,
                        f.vf_device, f.vf_offset, f.vf_stride);
  return text;
}

// The firmware gives a port what the functions behind it have, and the kernel cannot enlarge the
// window of an expander. So a port reserves what VFs will need.
std::string reserve_arguments(const BootNode& port, std::uint32_t divisor) {
  std::uint64_t narrow = 0;
  std::uint64_t wide = 0;
  std::uint64_t vfs = 0;
  for (const auto& child : port.children) {
    for (const Bar& bar : child.function->bars) {
      if (bar.size != 0) ((bar.flags & kWideBar) != 0 ? wide : narrow) += shrunk(bar.size, divisor);
    }
    vfs += child.function->vfs;
  }
  if (vfs == 0) return "";
  return fmt::format(",mem-reserve={},pref64-reserve={}",
                     size_text(std::bit_ceil(narrow + vfs * kVfNarrowBar)),
                     size_text(std::bit_ceil(wide + vfs * kVfWideBar)));
}

std::string_view device_name(BootKind kind) {
  switch (kind) {
    case BootKind::RootPort: return "pcie-root-port";
    case BootKind::UpstreamPort: return "x3130-upstream";
    case BootKind::DownstreamPort: return "xio3130-downstream";
    case BootKind::Endpoint: break;
  }
  return "gantry-gpu";
}

class DeviceArguments {
 public:
  DeviceArguments(std::uint32_t bar_divisor, std::set<unsigned> used_slots)
      : bar_divisor_(bar_divisor), used_slots_(std::move(used_slots)) {}

  void add_bus(const BootBus& bus) {
    if (!bus.main) {
      auto text = fmt::format("pxb-pcie,id={},bus=pcie.0,addr={:x},bus_nr=0x{:02x}", root_id(bus),
                              free_slot(), bus.number);
      if (bus.numa_node >= 0) text += fmt::format(",numa_node={}", bus.numa_node);
      add(text);
    }
    for (const auto& node : bus.devices) add_node(node, root_id(bus));
  }

  std::vector<std::string> take() { return std::move(arguments_); }

 private:
  // An expander is a function of the main bus itself. The chipset leaves at least 20 slots.
  unsigned free_slot() {
    unsigned slot = kFirstExpanderSlot;
    while (slot > 1 && used_slots_.count(slot) != 0) --slot;
    used_slots_.insert(slot);
    return slot;
  }

  void add(std::string device) {
    arguments_.emplace_back("-device");
    arguments_.push_back(std::move(device));
  }

  void add_node(const BootNode& node, const std::string& bus) {
    auto text = fmt::format("{},id={},bus={},addr={:02x}.{}", device_name(node.kind), node_id(node),
                            bus, node.booted.device, node.booted.function);
    if (node.multifunction) text += ",multifunction=on";
    if (node.kind == BootKind::Endpoint) {
      text += endpoint_arguments(*node.function, bar_divisor_);
    } else if (node.kind != BootKind::UpstreamPort) {
      text += fmt::format(",chassis={0},slot={0}", ++chassis_);
    }
    if (node.kind == BootKind::RootPort) text += reserve_arguments(node, bar_divisor_);
    add(std::move(text));
    for (const auto& child : node.children) add_node(child, node_id(node));
  }

  std::uint32_t bar_divisor_;
  unsigned chassis_ = 0;
  std::set<unsigned> used_slots_;
  std::vector<std::string> arguments_;
};

}  // namespace

std::vector<std::string> boot_devices(const std::vector<BootBus>& buses,
                                      std::uint32_t bar_divisor) {
  std::set<unsigned> used_slots;
  for (const auto& bus : buses) {
    for (const auto& node : bus.devices) {
      if (bus.main) used_slots.insert(node.booted.device);
    }
  }
  DeviceArguments arguments(bar_divisor, std::move(used_slots));
  for (const auto& bus : buses) arguments.add_bus(bus);
  return arguments.take();
}

}  // namespace gantry::sim
