// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/pci.hpp"

#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"
#include "gpu/model/pci_vendor.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace gantry::probe {
namespace {

using model::PciAddress;
using model::PciePath;

constexpr std::string_view kDevices = "/sys/bus/pci/devices";
constexpr std::size_t kValueLimit = 4096;  // a sysfs attribute has one page
constexpr std::chrono::seconds kLockDeadline{2};

std::optional<std::string> value(const sys::Host& host, const std::string& directory,
                                 std::string_view name) {
  auto text = host.read(fmt::format("{}/{}", directory, name), kValueLimit);
  if (!text.ok()) return std::nullopt;
  return std::string(trim(*text));
}

std::optional<std::uint64_t> number(const sys::Host& host, const std::string& directory,
                                    std::string_view name, std::uint64_t max) {
  const auto text = value(host, directory, name);
  const auto parsed = text ? parse_u64(*text, 0) : std::nullopt;
  return parsed && *parsed <= max ? parsed : std::nullopt;
}

// The base name of the target of a link such as "driver" or "iommu_group".
std::string link_name(const sys::Host& host, const std::string& directory, std::string_view name) {
  const auto target = host.link(fmt::format("{}/{}", directory, name));
  if (!target.ok()) return "";
  return target->substr(target->rfind('/') + 1);
}

std::optional<int> numa_node(const sys::Host& host, const std::string& directory) {
  const auto text = value(host, directory, "numa_node");
  const auto node = text ? parse_i64(*text) : std::nullopt;
  if (!node || *node < 0 || *node > 1'000'000) return std::nullopt;  // -1: the firmware did not say
  return static_cast<int>(*node);
}

// While an unbind waits in the kernel for a process that uses the GPU, readers of this file wait
// too, for ever. Nothing is known about the override then.
void read_overrides(const sys::Host& host, std::vector<PciDevice>& devices) {
  std::vector<std::string> paths;
  for (const auto& device : devices)
    paths.push_back(
        fmt::format("{}/{}/driver_override", kDevices, device.function.address.sysfs()));
  const auto texts = sys::read_with_deadline(host, paths, kLockDeadline, sys::AfterTimeout::GoOn);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!texts[i].ok() || trim(*texts[i]) == "(null)") continue;
    devices[i].function.driver_override = std::string(trim(*texts[i]));
  }
}

bool reads_all_ones(const sys::Host& host, const std::string& directory) {
  const auto fd = host.open(directory + "/config", O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) return false;
  std::array<unsigned char, 4> id{};
  if (::pread(fd->get(), id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) return false;
  return std::all_of(id.begin(), id.end(), [](unsigned char byte) { return byte == 0xff; });
}

std::uint32_t subsystem_id(const sys::Host& host, const std::string& directory) {
  const auto vendor = number(host, directory, "subsystem_vendor", 0xffff);
  const auto device = number(host, directory, "subsystem_device", 0xffff);
  if (!vendor || !device) return 0;
  return static_cast<std::uint32_t>(*device << 16U | *vendor);
}

std::optional<PciDevice> read_device(const sys::Host& host, const PciAddress& address,
                                     const std::string& directory) {
  const auto device = number(host, directory, "device", 0xffff);
  const auto class_code = number(host, directory, "class", 0xffffff);
  if (!device || !class_code) return std::nullopt;

  PciDevice found;
  found.path = host.resolve(directory).value_or(directory);
  auto& f = found.function;
  f.address = address;
  f.vendor = model::kNvidiaVendor;
  f.device = static_cast<std::uint16_t>(*device);
  f.class_code = static_cast<std::uint32_t>(*class_code);
  f.driver = link_name(host, directory, "driver");
  if (const auto group = parse_u64(link_name(host, directory, "iommu_group"))) {
    f.iommu_group = static_cast<int>(std::min<std::uint64_t>(*group, 1U << 30U));
  }
  f.numa_node = numa_node(host, directory);
  if (!f.is_gpu()) return found;
  found.cpu_list = value(host, directory, "local_cpulist").value_or("");
  found.subsystem_id = subsystem_id(host, directory);
  found.all_ones = reads_all_ones(host, directory);
  return found;
}

// The part of a resolved sysfs path that is the host bridge, and the addresses below it.
struct BridgePath {
  std::string_view root;                    // ".../pci0000:40"
  std::vector<std::string_view> addresses;  // bridges from the top, then the function itself
};

BridgePath bridge_path_of(std::string_view path) {
  BridgePath branch{.root = path, .addresses = {}};
  for (;;) {
    const auto slash = branch.root.rfind('/');
    if (slash == std::string_view::npos) break;
    const auto last = branch.root.substr(slash + 1);
    if (!PciAddress::parse(last)) break;
    branch.addresses.push_back(last);
    branch.root = branch.root.substr(0, slash);
  }
  std::reverse(branch.addresses.begin(), branch.addresses.end());
  return branch;
}

PciePath between_host_bridges(const PciScan& scan, const PciDevice& a, const PciDevice& b) {
  const auto& left = a.function.numa_node;
  const auto& right = b.function.numa_node;
  if (left && right) return *left == *right ? PciePath::Node : PciePath::System;
  return scan.one_numa_node ? PciePath::Node : PciePath::Unknown;
}

}  // namespace

const PciDevice* PciScan::find(const PciAddress& address) const {
  for (const auto& device : devices) {
    if (device.function.address == address) return &device;
  }
  return nullptr;
}

Result<PciScan> scan_pci(const sys::Host& host) {
  GANTRY_TRY(const auto names, host.list(kDevices).in("finding PCI functions"));
  PciScan scan;
  scan.listed = true;
  for (const auto& name : names) {
    const auto directory = fmt::format("{}/{}", kDevices, name);
    if (number(host, directory, "vendor", 0xffff) != model::kNvidiaVendor) continue;
    const auto address = PciAddress::parse(name);
    auto device = address ? read_device(host, *address, directory) : std::nullopt;
    if (device) {
      scan.devices.push_back(*std::move(device));
    } else {
      scan.notes.push_back(fmt::format("PCI function {}: class or device cannot be read", name));
    }
  }
  read_overrides(host, scan.devices);
  std::sort(scan.devices.begin(), scan.devices.end(),
            [](const auto& a, const auto& b) { return a.function.address < b.function.address; });
  const auto nodes = host.read_value("/sys/devices/system/node/online");
  scan.one_numa_node = !nodes || nodes->find_first_of(",-") == std::string::npos;
  return scan;
}

PciePath pcie_path(const PciScan& scan, const PciDevice& a, const PciDevice& b) {
  if (a.function.address == b.function.address) return PciePath::Self;
  const auto left = bridge_path_of(a.path);
  const auto right = bridge_path_of(b.path);
  if (left.addresses.empty() || right.addresses.empty()) return PciePath::Unknown;
  if (left.root != right.root) return between_host_bridges(scan, a, b);
  const auto [l, r] = std::mismatch(left.addresses.begin(), left.addresses.end(),
                                    right.addresses.begin(), right.addresses.end());
  const auto shared = l - left.addresses.begin();
  if (shared == 0) return PciePath::HostBridge;
  // A switch is an upstream port with a downstream port per GPU: one port each is still one switch.
  const auto ports_left = left.addresses.end() - l - 1;
  const auto ports_right = right.addresses.end() - r - 1;
  return std::max(ports_left, ports_right) <= 1 ? PciePath::SingleSwitch : PciePath::MultiSwitch;
}

}  // namespace gantry::probe
