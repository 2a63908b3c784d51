// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "gpu/probe/kernel_view.hpp"
#include "gpu/procfs/cpuinfo.hpp"
#include "gpu/procfs/gpus.hpp"
#include "install/preflight/facts_internal.hpp"
#include "vm/hypervisor/known_cards.hpp"
#include "vm/hypervisor/vgpu_profile.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/pci/vgpu_capability.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

namespace gantry::preflight {
namespace {

constexpr std::size_t kConfigLimit = 4096;
constexpr std::size_t kCpuinfoLimit = std::size_t{32} << 20U;

using Names = std::map<model::PciAddress, std::string>;

Names names_of_driver(const sys::Host& host) {
  Names names;
  const auto gpus = procfs::read_gpus(host);
  if (!gpus.ok()) return names;
  for (const auto& entry : *gpus) names[entry.information.gpu.pci] = entry.information.gpu.name;
  return names;
}

std::string product_name(const pci::Function& function, const Names& names) {
  const auto known = names.find(function.address);
  if (known != names.end() && !known->second.empty()) return known->second;
  const auto card = hypervisor::card_by_device_id(function.id.device);
  return card ? card->name : "";
}

// The names may differ: NovaCore is the driver of nova_core. A driver that is part of the kernel
// has no module.
std::string module_of_driver(const sys::Host& host, const std::string& driver) {
  if (driver.empty()) return "";
  const auto link = host.link(fmt::format("/sys/bus/pci/drivers/{}/module", driver));
  return link.ok() ? std::string(base_name(*link)) : driver;
}

// "GRID T4-8Q", "NVIDIA A10-4Q": where the capability is missing, the name that a driver gives
// tells that it is a vGPU.
bool is_name_of_vgpu(std::string_view name) {
  return hypervisor::parse_vgpu_profile(name.substr(name.rfind(' ') + 1)).ok();
}

GpuFact describe_gpu(const sys::Host& host, const pci::Function& function, const Names& names) {
  GpuFact gpu{.address = function.address,
              .device = function.id.device,
              .architecture = architecture_of_device(function.id.device),
              .name = product_name(function, names),
              .driver = function.driver,
              .driver_module = module_of_driver(host, function.driver),
              .boot_display = function.boot_vga,
              .lost = !function.answers};
  const auto config = host.read(pci::device_path(function.address) + "/config", kConfigLimit);
  const auto vgpu = config.ok() ? pci::parse_vgpu_capability(*config) : std::nullopt;
  gpu.is_vgpu = vgpu.has_value() || is_name_of_vgpu(gpu.name);
  if (vgpu) gpu.vgpu_host_driver = vgpu->host_driver_version;
  return gpu;
}

// Platform devices that show what the firmware left on the screen. They are bound to no PCI
// function, so nothing says which card they draw on; it is the one that the firmware booted with.
void read_framebuffers(const sys::Host& host, MachineFacts& facts) {
  constexpr std::array kDrivers{"simple-framebuffer", "simpledrm", "efi-framebuffer",
                                "vesa-framebuffer",   "efidrm",    "vesadrm"};
  for (const auto* driver : kDrivers) {
    const auto names = host.list(fmt::format("/sys/bus/platform/drivers/{}", driver));
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      const bool is_device = contains(name, ".") && !name.starts_with('.');
      if (is_device) facts.framebuffers.push_back({driver, name});
    }
  }
}

}  // namespace

Status read_gpus(const sys::Host& host, MachineFacts& facts) {
  GANTRY_TRY(auto bus, pci::read_bus(host));
  const auto module = probe::read_driver_module(host);
  if (module.loaded) facts.loaded = {module.version, module.flavour};
  const auto names = module.loaded ? names_of_driver(host) : Names{};
  for (const auto& function : bus.functions) {
    if (function.is_nvswitch()) ++facts.nvswitches;
    if (function.is_gpu() && !function.physfn)
      facts.gpus.push_back(describe_gpu(host, function, names));
  }
  for (auto& note : bus.notes) facts.notes.push_back(std::move(note));
  read_framebuffers(host, facts);
  const auto cpuinfo = host.read("/proc/cpuinfo", kCpuinfoLimit);
  facts.guest = cpuinfo.ok() && procfs::has_hypervisor_flag(*cpuinfo);
  return {};
}

}  // namespace gantry::preflight
