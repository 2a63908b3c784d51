// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/machine_state.hpp"

#include "base/core/text.hpp"
#include "base/sys/trusted.hpp"
#include "gpu/model/inventory_json.hpp"
#include "gpu/probe/snapshot.hpp"
#include "gpu/procfs/cpuinfo.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/mig.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace gantry::vfio {
namespace {

constexpr std::size_t kCpuinfoLimit = std::size_t{32} << 20;
constexpr std::size_t kAliasLimit = std::size_t{32} << 20;
constexpr std::size_t kInterruptsLimit = std::size_t{64} << 20;  // a number for each CPU and line

Iommu read_iommu(const sys::Host& host) {
  Iommu iommu;
  const auto units = host.list("/sys/class/iommu");
  iommu.active = units.ok() && !units->empty();
  const std::string tables = "/sys/firmware/acpi/tables";
  iommu.firmware_table = host.exists(tables + "/DMAR") || host.exists(tables + "/IVRS");
  const auto cpuinfo = host.read("/proc/cpuinfo", kCpuinfoLimit).value_or("");
  iommu.guest = procfs::has_hypervisor_flag(cpuinfo);
  iommu.amd = contains(cpuinfo, "AuthenticAMD");
  iommu.disabled_by = find_disabling_parameter(host.read("/proc/cmdline").value_or(""));
  iommu.interrupts = parse_interrupts(host.read("/proc/interrupts", kInterruptsLimit).value_or(""));
  const auto unsafe =
      host.read_value("/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts");
  iommu.unsafe_interrupts = unsafe == "Y";
  return iommu;
}

// From the file that an agent and `gantry cdi refresh` write: NVML would start on every GPU first.
std::vector<model::GpuUuid> gpus_in_mig_mode(const sys::Host& host) {
  std::vector<model::GpuUuid> found;
  const auto text = sys::read_trusted(host, probe::kInventoryPath, model::kInventoryJsonLimit);
  if (!text.ok()) return found;
  const auto inventory = model::inventory_from_json(*text);
  if (!inventory.ok()) return found;
  for (const auto& gpu : inventory->gpus) {
    const bool known = !gpu.uuid.text.empty();
    if (known && gpu.mig.current == model::MigMode::Enabled) found.push_back(gpu.uuid);
  }
  return found;
}

std::vector<DriverGpu> read_driver_gpus(const sys::Host& host) {
  std::vector<DriverGpu> gpus;
  const auto entries = procfs::read_gpus(host);
  if (!entries.ok()) return gpus;  // the driver is not loaded
  const auto in_mig_mode = gpus_in_mig_mode(host);
  for (const auto& entry : *entries) {
    const auto& gpu = entry.information.gpu;
    DriverGpu found{.address = gpu.pci, .uuid = gpu.uuid, .minor = {}};
    found.silent = entry.silent;
    found.in_mig_mode =
        std::find(in_mig_mode.begin(), in_mig_mode.end(), gpu.uuid) != in_mig_mode.end();
    if (gpu.minor) {
      found.minor = static_cast<std::uint32_t>(*gpu.minor);
      found.has_mig_instances = procfs::has_mig_instances(host, *found.minor);
    }
    gpus.push_back(std::move(found));
  }
  return gpus;
}

// Without nvidia-nvswitchctl, which belongs to no switch.
std::vector<std::string> read_nvswitch_nodes(const sys::Host& host) {
  std::vector<std::string> nodes;
  const auto names = host.list("/dev");
  for (const auto& name : names.ok() ? *names : std::vector<std::string>{}) {
    if (name.starts_with(kNvSwitchDriver) && parse_u64(name.substr(kNvSwitchDriver.size())))
      nodes.push_back("/dev/" + name);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// One look at all processes.
void read_holders(const sys::Host& host, std::vector<std::string> nodes, MachineState& state) {
  const auto is_control = [](const Holder& holder) {
    return std::find(kControlNodes.begin(), kControlNodes.end(), holder.node) !=
           kControlNodes.end();
  };
  nodes.insert(nodes.end(), kControlNodes.begin(), kControlNodes.end());
  for (auto& holder : find_holders(host, nodes))
    (is_control(holder) ? state.control_holders : state.holders).push_back(std::move(holder));
  std::erase_if(state.control_holders, [&](const Holder& holder) {
    return std::any_of(state.holders.begin(), state.holders.end(),
                       [&](const Holder& other) { return other.pid == holder.pid; });
  });
}

// Whether the kernel can load a module whose file is named so, "/vfio-pci.ko".
std::optional<bool> has_module_file(const sys::Host& host, const std::string& modules,
                                    std::span<const std::string_view> names) {
  const auto files = host.read(modules + "/modules.dep", kAliasLimit);
  if (!files.ok()) return std::nullopt;
  const auto builtin = host.read(modules + "/modules.builtin", kAliasLimit).value_or("");
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return contains(*files, name) || contains(builtin, name);
  });
}

std::optional<bool> find_vfio_module(const sys::Host& host, const std::string& modules) {
  constexpr std::array<std::string_view, 1> kNames{"/vfio-pci.ko"};
  if (host.exists("/sys/module/vfio_pci") || host.exists("/sys/bus/pci/drivers/vfio-pci"))
    return true;
  return has_module_file(host, modules, kNames);
}

// Debian's packages name the file after their branch, and have an alias for it.
std::optional<bool> find_nvidia_module(const sys::Host& host, const std::string& modules) {
  constexpr std::array<std::string_view, 4> kNames{"/nvidia.ko", "/nvidia-current", "/nvidia-tesla",
                                                   "/nvidia-legacy"};
  if (host.exists("/sys/module/nvidia")) return true;
  return has_module_file(host, modules, kNames);
}

}  // namespace

const DriverGpu* MachineState::driver_gpu(const model::PciAddress& address) const {
  for (const auto& gpu : gpus) {
    if (gpu.address == address) return &gpu;
  }
  return nullptr;
}

std::vector<std::string> device_nodes(const MachineState& state, const pci::Function& function) {
  std::vector<std::string> nodes;
  if (pci::is_vfio_driver(function.driver)) {
    if (function.iommu_group) nodes.push_back(fmt::format("/dev/vfio/{}", *function.iommu_group));
    if (!function.vfio_device.empty())
      nodes.push_back(fmt::format("/dev/vfio/devices/{}", function.vfio_device));
    return nodes;
  }
  const auto* gpu = state.driver_gpu(function.address);
  if (gpu != nullptr && gpu->minor) nodes.push_back(fmt::format("/dev/nvidia{}", *gpu->minor));
  // The driver does not say which of them a switch has. Its one user, Fabric Manager, has all open.
  if (function.driver == kNvSwitchDriver)
    nodes.insert(nodes.end(), state.nvswitch_nodes.begin(), state.nvswitch_nodes.end());
  for (const auto& name : function.drm_nodes) nodes.push_back(fmt::format("/dev/dri/{}", name));
  // The unbind of a sound function waits for the programs that have it open, too.
  for (const auto& name : function.sound_nodes) nodes.push_back(fmt::format("/dev/snd/{}", name));
  return nodes;
}

Result<MachineState> read_machine_state(const sys::Host& host) {
  MachineState state;
  GANTRY_TRY(state.bus, pci::read_bus(host));
  state.iommu = read_iommu(host);
  state.gpus = read_driver_gpus(host);
  state.nvswitch_nodes = read_nvswitch_nodes(host);
  const auto release = host.read_value("/proc/sys/kernel/osrelease").value_or("");
  const auto modules = fmt::format("/lib/modules/{}", release);
  state.aliases =
      parse_vfio_aliases(host.read(modules + "/modules.alias", kAliasLimit).value_or(""));
  state.has_vfio_module = find_vfio_module(host, modules);
  state.has_nvidia_module = find_nvidia_module(host, modules);
  std::vector<std::string> nodes;
  for (const auto& function : state.bus.functions) {
    if (!function.is_nvidia()) continue;
    for (auto& node : device_nodes(state, function)) nodes.push_back(std::move(node));
  }
  read_holders(host, std::move(nodes), state);
  GANTRY_TRY(const auto journals, read_journals(host));
  for (const auto& journal : journals) {
    UnfinishedWork work{.kind = journal.kind, .functions = {}, .stuck = journal.stuck};
    for (const auto& move : journal.moves) work.functions.push_back(move.address);
    state.unfinished.push_back(std::move(work));
  }
  return state;
}

InterruptRemapping parse_interrupts(std::string_view proc_interrupts) {
  // With remapping the kernel names its interrupt chips "IR-IO-APIC" and "IR-PCI-MSI".
  if (contains(proc_interrupts, " IR-")) return InterruptRemapping::On;
  const bool known = contains(proc_interrupts, " IO-APIC") || contains(proc_interrupts, " PCI-MSI");
  return known ? InterruptRemapping::Off : InterruptRemapping::Unknown;
}

std::string find_disabling_parameter(std::string_view cmdline) {
  constexpr std::array<std::string_view, 4> kOff = {"intel_iommu=off", "amd_iommu=off", "iommu=off",
                                                    "iommu=soft"};
  for (const auto word : split(trim(cmdline), ' ')) {
    if (std::find(kOff.begin(), kOff.end(), word) != kOff.end()) return std::string(word);
  }
  return "";
}

Result<model::PciAddress> find_gpu(const MachineState& state, std::string_view name) {
  const auto help = "`gantry vfio list` shows all of them";
  if (const auto address = model::PciAddress::parse(name)) {
    const auto* function = state.bus.find(*address);
    if (function == nullptr) {
      return Error(Errc::NotFound, fmt::format("{} is not on the PCI bus", address->sysfs()))
          .advise(help);
    }
    if (function->is_gpu() || function->is_nvswitch()) return *address;
    return Error(Errc::Invalid,
                 fmt::format("{} is not an NVIDIA GPU but {} {}", address->sysfs(),
                             pci::to_string(function->kind()), pci::to_string(function->id)))
        .advise(help);
  }
  for (const auto& gpu : state.gpus) {
    if (!gpu.uuid.text.empty() && gpu.uuid.text == name) return gpu.address;
  }
  if (const auto index = parse_u64(name); index && *index < state.gpus.size())
    return state.gpus[*index].address;
  return Error(Errc::NotFound, fmt::format("there is no GPU {}", name)).advise(help);
}

}  // namespace gantry::vfio
