// SPDX-License-Identifier: Apache-2.0
// Which PCI functions a virtual machine host gets, on which buses, and with which addresses.
#include "gpu/model/pci_vendor.hpp"
#include "sim/machine/boot_internal.hpp"
#include "sim/machine/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::sim {
namespace {

constexpr unsigned kLastBus = 0xff;
constexpr std::uint8_t kLastSlot = 0x1f;  // of the main bus: the chipset's own functions

using Children = std::map<model::PciAddress, std::vector<const PciFunction*>>;

bool is_bridge(const PciFunction& function) {
  return function.class_code >> 8U == 0x0604U;
}

// GPUs, NVIDIA's other functions and the bridges above them, by address.
std::vector<const PciFunction*> booted_functions(const Machine& machine) {
  std::set<model::PciAddress> wanted;
  auto want = [&](const PciFunction& function) {
    wanted.insert(function.address);
    for (const auto& bridge : bridges_above(machine, function)) wanted.insert(bridge);
  };
  for (const auto& gpu : machine.gpus) want(gpu.pci);
  for (const auto& function : machine.pci) {
    if (function.vendor == model::kNvidiaVendor && !is_bridge(function)) want(function);
  }
  std::vector<const PciFunction*> functions;
  for (const auto* function : pci_functions(machine)) {
    if (wanted.count(function->address) != 0) functions.push_back(function);
  }
  std::sort(functions.begin(), functions.end(),
            [](const auto* a, const auto* b) { return a->address < b->address; });
  return functions;
}

// A link has one device at its end; a root bus and the inside of a switch have many.
BootKind kind_below(BootKind parent, const PciFunction& function) {
  if (!is_bridge(function)) return BootKind::Endpoint;
  return parent == BootKind::UpstreamPort ? BootKind::DownstreamPort : BootKind::UpstreamPort;
}

Error unsupported(const PciFunction& function, std::string_view why) {
  return Error(Errc::Unsupported,
               fmt::format("{} {}, so the machine cannot be booted; it can be created with `gantry "
                           "sim create`",
                           function.address.sysfs(), why));
}

// The functions of a slot are numbered from 0: without function 0 a slot counts as empty.
void number_functions(std::vector<BootNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size();) {
    std::size_t end = i;
    while (end < nodes.size() && nodes[end].booted.device == nodes[i].booted.device) ++end;
    const auto first = nodes[i].booted.function;
    for (std::size_t j = i; j < end; ++j) {
      nodes[j].booted.function = static_cast<std::uint8_t>(nodes[j].booted.function - first);
      nodes[j].multifunction = end - i > 1;
    }
    i = end;
  }
}

Status check_link(const std::vector<BootNode>& nodes, BootKind parent) {
  if (parent == BootKind::UpstreamPort) {
    for (const auto& node : nodes) {
      if (node.kind == BootKind::Endpoint)
        return unsupported(*node.function,
                           "is inside a PCIe switch instead of behind a port of it");
    }
    return {};
  }
  for (const auto& node : nodes) {
    if (node.function->address.device != nodes.front().function->address.device)
      return unsupported(*node.function, "shares a PCIe link with another device");
  }
  return {};
}

Status add_children(BootNode& node, const Children& children) {
  const auto found = children.find(node.function->address);
  if (found == children.end()) return {};
  for (const auto* function : found->second) {
    BootNode child{
        .function = function,
        .kind = kind_below(node.kind, *function),
        .booted = {.device = function->address.device, .function = function->address.function},
        .children = {}};
    GANTRY_CHECK(add_children(child, children));
    node.children.push_back(std::move(child));
  }
  GANTRY_CHECK(check_link(node.children, node.kind));
  if (node.kind != BootKind::UpstreamPort) {
    for (auto& child : node.children) child.booted.device = 0;
  }
  number_functions(node.children);
  return {};
}

Result<BootNode> root_node(const PciFunction& function, const Children& children) {
  BootNode node{
      .function = &function,
      .kind = is_bridge(function) ? BootKind::RootPort : BootKind::Endpoint,
      .booted = {.device = function.address.device, .function = function.address.function},
      .children = {}};
  GANTRY_CHECK(add_children(node, children));
  return node;
}

// Depth first, as the firmware does it. `last` is the last bus that has a number.
Status number_buses(std::vector<BootNode>& nodes, unsigned bus, unsigned& last) {
  for (auto& node : nodes) {
    node.booted.bus = static_cast<std::uint8_t>(bus);
    if (node.kind == BootKind::Endpoint) continue;
    if (last == kLastBus) return unsupported(*node.function, "needs a 257th bus");
    const auto below = ++last;
    GANTRY_CHECK(number_buses(node.children, below, last));
  }
  return {};
}

Status check_main_bus(const BootBus& bus) {
  for (const auto& node : bus.devices) {
    if (node.booted.device == 0 || node.booted.device == kLastSlot)
      return unsupported(*node.function, "is where QEMU's chipset is");
  }
  return {};
}

Status number_all(std::vector<BootBus>& buses) {
  unsigned last = 0;
  for (auto& bus : buses) {
    number_functions(bus.devices);
    if (bus.main) GANTRY_CHECK(check_main_bus(bus));
    if (!bus.main) {
      last = std::max<unsigned>(bus.number, last + 1);
      if (last > kLastBus) return unsupported(*bus.devices.front().function, "needs a 257th bus");
      bus.number = static_cast<std::uint8_t>(last);
    }
    GANTRY_CHECK(number_buses(bus.devices, bus.number, last));
  }
  return {};
}

bool is_on_main_bus(const PciFunction& function) {
  return function.address.domain == 0 && function.address.bus == 0;
}

// QEMU's expanders take bridges only. A device without a port on another root bus gets a slot of
// the main bus.
class MainSlots {
 public:
  explicit MainSlots(const std::vector<const PciFunction*>& roots) {
    for (const auto* function : roots) {
      if (is_on_main_bus(*function)) used_.insert(function->address.device);
    }
  }
  std::uint8_t slot_of(const PciFunction& function) {
    if (is_on_main_bus(function)) return function.address.device;
    auto address = function.address;
    address.function = 0;
    const auto [found, added] = moved_.try_emplace(address, std::uint8_t{1});
    if (added) {
      while (used_.count(found->second) != 0) ++found->second;
      used_.insert(found->second);
    }
    return found->second;
  }

 private:
  std::set<std::uint8_t> used_;
  std::map<model::PciAddress, std::uint8_t> moved_;
};

void collect(const std::vector<BootNode>& nodes, BootAddresses& out) {
  for (const auto& node : nodes) {
    out[node.function->address] = node.booted;
    collect(node.children, out);
  }
}

bool is_display(const PciFunction& function) {
  return function.class_code >> 16U == 0x03U;
}

// QEMU gives the node of a root bus to all its devices, so a GPU that has lost its node takes it
// from all of them.
bool gpus_know_their_node(const PciFunction& function, const Children& children) {
  if (is_display(function) && function.numa_node < 0) return false;
  const auto found = children.find(function.address);
  return found == children.end() ||
         std::all_of(found->second.begin(), found->second.end(), [&](const PciFunction* child) {
           return gpus_know_their_node(*child, children);
         });
}

}  // namespace

Result<std::vector<BootBus>> boot_topology(const Machine& machine) {
  Children children;
  std::vector<const PciFunction*> roots;
  for (const auto* function : booted_functions(machine)) {
    if (function->parent) {
      children[*function->parent].push_back(function);
    } else {
      roots.push_back(function);
    }
  }
  std::map<std::pair<std::uint32_t, std::uint8_t>, BootBus> by_number;  // sorted: domain 0 first
  MainSlots slots(roots);
  for (const auto* function : roots) {
    const auto& address = function->address;
    const bool main = is_on_main_bus(*function) || !is_bridge(*function);
    auto& bus =
        by_number[main ? std::pair{0U, std::uint8_t{0}} : std::pair{address.domain, address.bus}];
    bus.main = main;
    bus.number = main ? 0 : address.bus;
    const bool known_node = machine.numa.size() > 1 && function->numa_node >= 0 &&
                            static_cast<std::size_t>(function->numa_node) < machine.numa.size();
    if (known_node && !main && gpus_know_their_node(*function, children))
      bus.numa_node = function->numa_node;
    GANTRY_TRY(auto node, root_node(*function, children));
    if (main) node.booted.device = slots.slot_of(*function);
    bus.devices.push_back(std::move(node));
  }
  std::vector<BootBus> buses;
  for (auto& [number, bus] : by_number) buses.push_back(std::move(bus));
  GANTRY_CHECK(number_all(buses));
  return buses;
}

BootAddresses boot_addresses(const std::vector<BootBus>& buses) {
  BootAddresses addresses;
  for (const auto& bus : buses) collect(bus.devices, addresses);
  return addresses;
}

}  // namespace gantry::sim
