// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "vm/hypervisor/guest_gpu.hpp"
#include "vm/hypervisor/vm_description.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::hypervisor {
namespace {

// libvirt's units: KiB is the default; KB and MB are powers of 1000.
std::optional<std::uint64_t> amount(const XmlElement& element) {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr Unit kUnits[] = {{"", 1024},
                             {"b", 1},
                             {"bytes", 1},
                             {"kb", 1000},
                             {"k", 1024},
                             {"kib", 1024},
                             {"mb", 1000000},
                             {"m", kMiB},
                             {"mib", kMiB},
                             {"gb", 1000000000},
                             {"g", kGiB},
                             {"gib", kGiB},
                             {"tb", 1000000000000},
                             {"t", 1024 * kGiB},
                             {"tib", 1024 * kGiB}};
  const auto number = parse_u64(element.text);
  const auto unit = to_lower(element.attribute("unit"));
  for (const auto& known : kUnits) {
    if (known.name != unit || !number) continue;
    if (*number > (1ULL << 62U) / known.bytes) return std::nullopt;
    return *number * known.bytes;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> attribute_number(const XmlElement& element, std::string_view name) {
  return parse_u64(element.attribute(name), 0);
}

std::optional<model::PciAddress> source_address(const XmlElement& hostdev) {
  const auto* address = hostdev.at({"source", "address"});
  if (address == nullptr) return std::nullopt;
  const auto domain = attribute_number(*address, "domain").value_or(0);
  const auto bus = attribute_number(*address, "bus");
  const auto slot = attribute_number(*address, "slot");
  const auto function = attribute_number(*address, "function").value_or(0);
  if (!bus || !slot || *bus > 0xff || *slot > 0x1f || function > 7 || domain > 0xffffffff)
    return std::nullopt;
  return model::PciAddress{.domain = static_cast<std::uint32_t>(domain),
                           .bus = static_cast<std::uint8_t>(*bus),
                           .device = static_cast<std::uint8_t>(*slot),
                           .function = static_cast<std::uint8_t>(function)};
}

struct DomainBus {
  std::optional<std::uint64_t> above;
  bool port = false;
  std::optional<int> numa_node;
};

class DomainBuses {
 public:
  void add(const XmlElement& controller) {
    const auto index = attribute_number(controller, "index");
    if (controller.attribute("type") != "pci" || !index) return;
    DomainBus bus;
    bus.port = controller.attribute("model").find("port") != std::string::npos;
    if (const auto* address = controller.child("address")) {
      bus.above = attribute_number(*address, "bus");
    }
    if (const auto* node = controller.at({"target", "node"})) {
      const auto number = parse_u64(node->text);
      if (number && *number < 1024) bus.numa_node = static_cast<int>(*number);
    }
    buses_[*index] = bus;
  }

  void follow(const XmlElement& hostdev, AttachedDevice& device) const {
    const auto* address = hostdev.child("address");
    auto bus = address == nullptr ? std::nullopt : attribute_number(*address, "bus");
    for (int steps = 0; bus && steps < 16; ++steps) {
      const auto found = buses_.find(*bus);
      if (found == buses_.end()) return;
      device.root_port = device.root_port || found->second.port;
      if (found->second.numa_node) device.guest_node = found->second.numa_node;
      bus = found->second.above;
    }
  }

 private:
  std::map<std::uint64_t, DomainBus> buses_;
};

void read_devices(const XmlElement& devices, VmDescription& vm) {
  DomainBuses buses;
  for (const auto& child : devices.children) {
    if (child.name == "controller") buses.add(child);
  }
  for (const auto& child : devices.children) {
    const auto type = child.attribute("type");
    if (child.name != "hostdev" || (type != "pci" && type != "mdev")) continue;
    AttachedDevice device;
    device.line = child.line;
    // libvirt puts a device without an address behind a root port of its own on q35.
    device.root_port = child.child("address") == nullptr && vm.q35;
    if (type == "pci") {
      device.host = source_address(child);
      device.managed = child.attribute("managed") == "yes";
      if (!device.host) continue;
    } else if (const auto* address = child.at({"source", "address"})) {
      device.mdev_uuid = to_lower(address->attribute("uuid"));
    }
    buses.follow(child, device);
    vm.devices.push_back(std::move(device));
  }
}

// <qemu:arg value='-fw_cfg'/><qemu:arg value='name=...'/>
Status read_command_line(const XmlElement& command_line, VmDescription& vm) {
  const XmlElement* option = nullptr;
  for (const auto& argument : command_line.children) {
    if (argument.name != "arg") continue;
    const auto value = argument.attribute("value");
    if (value.starts_with('-')) {
      option = &argument;
      continue;
    }
    if (option == nullptr) continue;
    auto name = option->attribute("value");
    name.erase(0, name.find_first_not_of('-'));
    GANTRY_CHECK(detail::read_qemu_option(
        {.name = std::move(name), .value = value, .line = argument.line}, vm));
    option = nullptr;
  }
  return {};
}

void read_firmware(const XmlElement& domain, VmDescription& vm) {
  if (const auto* type = domain.at({"os", "type"})) {
    const auto machine = type->attribute("machine");
    vm.q35 = machine == "q35" || machine.starts_with("pc-q35");
  }
  if (const auto* os = domain.child("os")) {
    vm.efi = os->attribute("firmware") == "efi" ||
             (os->child("loader") != nullptr && os->child("loader")->attribute("type") == "pflash");
  }
}

}  // namespace

Result<VmDescription> describe_domain(std::string_view text) {
  GANTRY_TRY(const auto domain, parse_xml(text));
  if (domain.name != "domain") {
    return Error(Errc::Invalid, fmt::format("<{}> is not a libvirt domain; the file must begin "
                                            "with <domain>, as `virsh dumpxml NAME` writes it",
                                            domain.name));
  }
  VmDescription vm;
  vm.libvirt = true;
  vm.has_uuid = true;  // libvirt generates one
  read_firmware(domain, vm);
  if (const auto* memory = domain.child("memory")) vm.memory_bytes = amount(*memory);
  if (const auto* limit = domain.at({"memtune", "hard_limit"}))
    vm.lock_limit_bytes = amount(*limit);
  vm.locked = domain.at({"memoryBacking", "locked"}) != nullptr;
  if (const auto* cpu = domain.child("cpu")) {
    const auto mode = cpu->attribute("mode");  // QEMU gives both models the host's address bits
    vm.host_phys_bits = mode == "host-passthrough" || mode == "maximum";
  }
  if (const auto* bits = domain.at({"cpu", "maxphysaddr"})) {
    vm.host_phys_bits = !bits->attribute("mode").empty();
  }
  if (const auto* devices = domain.child("devices")) read_devices(*devices, vm);
  if (const auto* more = domain.child("commandline")) GANTRY_CHECK(read_command_line(*more, vm));
  return vm;
}

}  // namespace gantry::hypervisor
