// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "vm/hypervisor/guest_gpu.hpp"
#include "vm/hypervisor/vm_description.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::hypervisor {
namespace {

using Properties = std::map<std::string, std::string>;

std::string property(const Properties& properties, const std::string& name) {
  const auto found = properties.find(name);
  return found == properties.end() ? "" : found->second;
}

bool is_on(std::string_view value) {
  return value == "on" || value == "true" || value == "yes";
}

struct QemuBus {
  std::string above;  // the bus that the port or bridge is on
  bool port = false;
  std::optional<int> numa_node;
};

bool is_pcie_port(std::string_view driver) {
  return driver == "pcie-root-port" || driver == "ioh3420" || driver == "xio3130-downstream";
}

void read_machine(const Properties& machine, VmDescription& vm) {
  const auto type = property(machine, "type");
  vm.q35 = vm.q35 || type == "q35" || type.starts_with("pc-q35");
  vm.efi = vm.efi || machine.count("pflash0") != 0;
}

void read_cpu(const Properties& cpu, VmDescription& vm) {
  // QEMU sets host-phys-bits itself for these two models (target/i386/host-cpu.c).
  const auto model = property(cpu, "type");
  const bool by_model = (model == "host" || model == "max") && cpu.count("host-phys-bits") == 0;
  if (by_model || is_on(property(cpu, "host-phys-bits")) || cpu.count("phys-bits") != 0)
    vm.host_phys_bits = true;
}

void read_firmware_value(const Properties& entry, VmDescription& vm) {
  if (property(entry, "name") != "opt/ovmf/X-PciMmio64Mb") return;
  const auto mib = parse_u64(property(entry, "string"));
  if (mib && *mib < (1ULL << 40U)) vm.window_bytes = *mib * kMiB;
}

// Where "host" leads, or the last part of "sysfsdev": an address or the UUID of a mediated device.
AttachedDevice vfio_device(const Properties& device, int line) {
  AttachedDevice attached;
  attached.line = line;
  auto source = property(device, "host");
  if (source.empty()) {
    auto path = property(device, "sysfsdev");
    while (path.ends_with('/')) path.pop_back();
    source = path.substr(path.rfind('/') + 1);
  }
  attached.host = model::PciAddress::parse(source);
  if (!attached.host) attached.mdev_uuid = to_lower(source);
  return attached;
}

class QemuDevices {
 public:
  Status add(const QemuOption& option) {
    GANTRY_TRY(const auto device,
               parse_properties(option.value, "driver").in(fmt::format("line {}", option.line)));
    const auto driver = property(device, "driver");
    if (driver.starts_with("vfio-pci")) {
      attached_.emplace_back(vfio_device(device, option.line), property(device, "bus"));
      return {};
    }
    QemuBus bus{.above = property(device, "bus"), .port = is_pcie_port(driver), .numa_node = {}};
    const auto node = parse_u64(property(device, "numa_node"));
    if (driver == "pxb-pcie" && node && *node < 1024) bus.numa_node = static_cast<int>(*node);
    const auto id = property(device, "id");
    if (!id.empty()) buses_[id] = std::move(bus);
    return {};
  }

  void finish(VmDescription& vm) {
    for (auto& [device, bus] : attached_) {
      follow(bus, device);
      vm.devices.push_back(std::move(device));
    }
  }

 private:
  // Up to the root; a cycle of buses in a wrong command ends after some steps.
  void follow(std::string bus, AttachedDevice& device) const {
    for (int steps = 0; steps < 16; ++steps) {
      const auto found = buses_.find(bus);
      if (found == buses_.end()) return;
      device.root_port = device.root_port || found->second.port;
      if (found->second.numa_node) device.guest_node = found->second.numa_node;
      bus = found->second.above;
    }
  }

  std::map<std::string, QemuBus> buses_;
  std::vector<std::pair<AttachedDevice, std::string>> attached_;
};

void read_memory(const Properties& memory, VmDescription& vm) {
  if (const auto bytes = parse_qemu_size(property(memory, "size"), kMiB)) vm.memory_bytes = bytes;
}

}  // namespace

namespace detail {

Status read_qemu_option(const QemuOption& option, VmDescription& vm) {
  const auto& name = option.name;
  const bool wanted = name == "machine" || name == "M" || name == "cpu" || name == "fw_cfg" ||
                      name == "m" || name == "drive";
  if (!wanted) {
    vm.has_uuid = vm.has_uuid || name == "uuid";
    if (name == "bios") vm.efi = vm.efi || contains(to_lower(option.value), "ovmf");
    return {};
  }
  const auto first = name == "m" ? "size" : name == "fw_cfg" ? "name" : "type";
  GANTRY_TRY(const auto properties,
             parse_properties(option.value, first).in(fmt::format("line {}", option.line)));
  if (name == "machine" || name == "M") read_machine(properties, vm);
  if (name == "cpu") read_cpu(properties, vm);
  if (name == "fw_cfg") read_firmware_value(properties, vm);
  if (name == "m") read_memory(properties, vm);
  if (name == "drive") vm.efi = vm.efi || property(properties, "if") == "pflash";
  return {};
}

}  // namespace detail

Result<VmDescription> describe_qemu(std::string_view text) {
  GANTRY_TRY(const auto command, parse_qemu_command(text));
  VmDescription vm;
  vm.lock_limit_bytes = command.lock_limit_bytes;
  QemuDevices devices;
  for (const auto& option : command.options) {
    if (option.name == "device") {
      GANTRY_CHECK(devices.add(option));
    } else {
      GANTRY_CHECK(detail::read_qemu_option(option, vm));
    }
  }
  devices.finish(vm);
  return vm;
}

}  // namespace gantry::hypervisor
