// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/plan.hpp"

#include "base/core/text.hpp"
#include "gpu/probe/nvml_program.hpp"
#include "vm/vfio/plan_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::vfio {
namespace {

using model::PciAddress;

constexpr std::array<std::string_view, 25> kCodeNames = {
    "gone",
    "not-nvidia",
    "vendor-vfio",
    "iommu-off-in-firmware",
    "iommu-off-in-kernel",
    "guest-without-iommu",
    "not-behind-iommu",
    "no-interrupt-remapping",
    "unsafe-interrupts",
    "no-driver-override",
    "no-vfio-module",
    "group-not-viable",
    "display",
    "mig-instances",
    "mig-mode",
    "vfs-enabled",
    "has-vgpus",
    "unfinished",
    "stuck",
    "in-use",
    "no-reset",
    "bus-reset",
    "fallen-off-the-bus",
    "wide-domain",
    "driver-open",
};

bool has(const std::vector<PciAddress>& addresses, const PciAddress& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

void add_card(const MachineState& state, const PciAddress& target, Plan& plan) {
  for (const auto* function : functions_of_card(state.bus, target)) {
    const bool known =
        std::any_of(plan.functions.begin(), plan.functions.end(),
                    [&](const auto& other) { return other.address == function->address; });
    if (known) continue;
    const auto module = choose_vfio_module(state.aliases, function->modalias);
    plan.functions.push_back({.address = function->address,
                              .target = target,
                              .kind = function->kind(),
                              .id = function->id,
                              .group = function->iommu_group,
                              .driver = function->driver,
                              .override_ = function->driver_override,
                              .module = module,
                              .to_driver = expected_driver(module)});
    if (function->iommu_group) plan.groups.push_back(*function->iommu_group);
  }
}

std::vector<PciAddress> all_targets(const pci::Bus& bus, const PassthroughRequest& request) {
  auto targets = request.targets;
  if (request.with_nvswitches) {
    for (const auto& function : bus.functions) {
      if (function.is_nvswitch()) targets.push_back(function.address);
    }
  }
  std::vector<PciAddress> once;
  for (const auto& target : targets) {
    if (!has(once, target)) once.push_back(target);
  }
  return once;
}

void add_nodes(const MachineState& state, Plan& plan) {
  for (const auto& planned : plan.functions) {
    const auto* function = state.bus.find(planned.address);
    if (function == nullptr || planned.done()) continue;
    for (auto& node : device_nodes(state, *function)) {
      if (std::find(plan.nodes.begin(), plan.nodes.end(), node) == plan.nodes.end())
        plan.nodes.push_back(std::move(node));
    }
  }
}

void add_holder(const MachineState& state, const Holder& holder, Plan& plan) {
  if (is_own_sensor(holder)) return;
  if (is_persistence_daemon(holder)) {
    for (const auto& target : plan.targets) {
      const auto* gpu = state.driver_gpu(target);
      const bool held =
          gpu != nullptr && gpu->minor && holder.node == fmt::format("/dev/nvidia{}", *gpu->minor);
      if (held && !has(plan.persistence, target)) plan.persistence.push_back(target);
    }
    return;
  }
  if (is_dcgm_service(holder)) {
    if (std::find(plan.services.begin(), plan.services.end(), holder.unit) == plan.services.end())
      plan.services.push_back(holder.unit);
    return;
  }
  const bool known = std::any_of(plan.holders.begin(), plan.holders.end(),
                                 [&](const Holder& other) { return other.pid == holder.pid; });
  if (!known) plan.holders.push_back(holder);
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::Blocker: return "blocker";
    case Severity::InUse: return "in-use";
    case Severity::Warning: break;
  }
  return "warning";
}

std::string_view to_string(FindingCode code) {
  static_assert(kCodeNames.size() == static_cast<std::size_t>(FindingCode::DriverOpen) + 1);
  return kCodeNames[static_cast<std::size_t>(code)];
}

bool PlannedFunction::done() const {
  return !driver.empty() && same_driver(driver, to_driver);
}

bool Plan::blocked() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const auto& finding) { return finding.severity == Severity::Blocker; });
}

bool Plan::in_use() const {
  return !holders.empty();
}

bool Plan::complete() const {
  return !functions.empty() &&
         std::all_of(functions.begin(), functions.end(), [](const auto& f) { return f.done(); });
}

std::vector<const pci::Function*> functions_of_card(const pci::Bus& bus, const PciAddress& target) {
  std::vector<const pci::Function*> found;
  const auto add = [&](const pci::Function* function) {
    const bool skip = function == nullptr || function->class_code >> 8U == 0x0604U ||
                      std::find(found.begin(), found.end(), function) != found.end();
    if (!skip) found.push_back(function);
  };
  const auto* gpu = bus.find(target);
  if (gpu == nullptr) return found;
  add(gpu);
  if (gpu->physfn) return found;  // a VF goes alone: the card stays with the host
  for (const auto& function : bus.functions) {
    if (pci::same_slot(function.address, target) && !function.physfn) add(&function);
  }
  // The list grows while it is walked, so the consumers of consumers come too.
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& consumer : found[i]->consumers) add(bus.find(consumer));
  }
  std::sort(found.begin(), found.end(), [&](const auto* a, const auto* b) {
    const bool a_last = a->address == target;
    const bool b_last = b->address == target;
    return a_last != b_last ? b_last : b->address < a->address;
  });
  return found;
}

std::vector<const pci::Function*> blocking_members(const pci::Bus& bus, int group,
                                                   const std::vector<PciAddress>& bound) {
  std::vector<const pci::Function*> found;
  const auto* members = bus.group(group);
  if (members == nullptr) return found;
  for (const auto& address : members->members) {
    const auto* function = bus.find(address);
    if (function == nullptr || has(bound, address)) continue;
    // The kernel lets a group be used while its other members have no driver, or one that does no
    // DMA on its own.
    const auto& driver = function->driver;
    const bool harmless = driver.empty() || pci::is_vfio_driver(driver) || driver == "pcieport" ||
                          driver == "pci-stub";
    if (!harmless) found.push_back(function);
  }
  return found;
}

bool is_own_sensor(const Holder& holder) {
  const auto words = split(holder.command, ' ');
  return words.size() > 1 && words[0].substr(words[0].rfind('/') + 1) == probe::kNvmlProgram &&
         words[1] == probe::kWatchCommand;
}

bool is_persistence_daemon(const Holder& holder) {
  return holder.name == std::string_view("nvidia-persistenced").substr(0, 15);
}

bool is_dcgm_service(const Holder& holder) {
  return holder.name == "nv-hostengine" && !holder.unit.empty() && holder.pod.empty();
}

Plan plan_passthrough(const MachineState& state, const PassthroughRequest& request) {
  Plan plan;
  plan.targets = all_targets(state.bus, request);
  for (const auto& target : plan.targets) add_card(state, target, plan);
  std::sort(plan.groups.begin(), plan.groups.end());
  plan.groups.erase(std::unique(plan.groups.begin(), plan.groups.end()), plan.groups.end());
  add_nodes(state, plan);
  for (const auto& holder : state.holders) {
    const bool ours =
        std::find(plan.nodes.begin(), plan.nodes.end(), holder.node) != plan.nodes.end();
    if (ours) add_holder(state, holder, plan);
  }
  add_findings(state, plan);
  return plan;
}

}  // namespace gantry::vfio
