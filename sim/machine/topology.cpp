// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/topology.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kMaxCpu = 4095;

const PciFunction* find(const Machine& machine, const model::PciAddress& address) {
  for (const auto* function : pci_functions(machine)) {
    if (function->address == address) return function;
  }
  return nullptr;
}

std::string root_bus(const model::PciAddress& address) {
  return fmt::format("pci{:04x}:{:02x}", address.domain, address.bus);
}

}  // namespace

std::vector<const PciFunction*> pci_functions(const Machine& machine) {
  std::vector<const PciFunction*> all;
  for (const auto& gpu : machine.gpus) all.push_back(&gpu.pci);
  for (const auto& function : machine.pci) all.push_back(&function);
  return all;
}

std::vector<model::PciAddress> bridges_above(const Machine& machine, const PciFunction& function) {
  std::vector<model::PciAddress> up;
  const PciFunction* at = &function;
  while (at != nullptr && at->parent && up.size() <= kMaxBridges) {
    up.push_back(*at->parent);
    at = find(machine, *at->parent);
  }
  std::reverse(up.begin(), up.end());
  return up;
}

std::string sysfs_directory(const Machine& machine, const PciFunction& function) {
  const auto bridges = bridges_above(machine, function);
  const auto& top = bridges.empty() ? function.address : bridges.front();
  std::string path = fmt::format("/sys/devices/{}", root_bus(top));
  for (const auto& bridge : bridges) path += "/" + bridge.sysfs();
  return path + "/" + function.address.sysfs();
}

std::uint8_t topology_level(const Machine& machine, const PciFunction& a, const PciFunction& b) {
  const auto above_a = bridges_above(machine, a);
  const auto above_b = bridges_above(machine, b);
  std::size_t shared = 0;
  while (shared < above_a.size() && shared < above_b.size() && above_a[shared] == above_b[shared]) {
    ++shared;
  }
  if (shared > 0) {
    // One switch: from its upstream port each card is at most one downstream port away.
    const auto apart = std::max(above_a.size(), above_b.size()) - shared;
    return apart <= 1 ? 10 : 20;
  }
  const auto& top_a = above_a.empty() ? a.address : above_a.front();
  const auto& top_b = above_b.empty() ? b.address : above_b.front();
  if (top_a.domain == top_b.domain && top_a.bus == top_b.bus) return 30;
  const bool known = a.numa_node >= 0 || machine.numa.size() < 2;
  return known && a.numa_node == b.numa_node ? 40 : 50;
}

std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text) {
  std::vector<std::uint32_t> cpus;
  for (const auto part : split(trim(text), ',')) {
    const auto dash = part.find('-');
    const auto first = parse_u64(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_u64(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last > kMaxCpu) return std::nullopt;
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<std::uint32_t>(cpu));
    if (cpus.size() > kMaxCpu + 1) return std::nullopt;
  }
  return cpus;
}

std::string cpu_mask(const std::vector<std::uint32_t>& cpus, std::size_t count) {
  const std::size_t words = std::max<std::size_t>(1, (count + 31) / 32);
  std::vector<std::uint32_t> bits(words, 0);
  for (const auto cpu : cpus) {
    if (cpu / 32 < words) bits[cpu / 32] |= 1U << (cpu % 32);
  }
  // The kernel prints the topmost word only as wide as it has CPUs.
  const auto rest = count % 32;
  const auto top_digits = rest == 0 ? 8 : (rest + 3) / 4;
  std::string mask = fmt::format("{:0{}x}", bits.back(), top_digits);
  for (std::size_t i = words - 1; i-- > 0;) mask += fmt::format(",{:08x}", bits[i]);
  return mask;
}

std::size_t cpu_count(const Machine& machine) {
  std::size_t count = 0;
  for (const auto& node : machine.numa) {
    for (const auto cpu : parse_cpu_list(node.cpus).value_or(std::vector<std::uint32_t>{})) {
      count = std::max<std::size_t>(count, cpu + 1);
    }
  }
  return std::max<std::size_t>(count, 1);
}

std::string local_cpus(const Machine& machine, std::int32_t numa_node) {
  if (numa_node >= 0 && static_cast<std::size_t>(numa_node) < machine.numa.size()) {
    return machine.numa[static_cast<std::size_t>(numa_node)].cpus;
  }
  const auto count = cpu_count(machine);
  return count == 1 ? "0" : fmt::format("0-{}", count - 1);
}

}  // namespace gantry::sim
