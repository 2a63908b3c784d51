// SPDX-License-Identifier: Apache-2.0
// ESXi: lines of a .vmx file. No ESXi has started them in our tests; docs/esxi.md names the source
// of each rule. The lines of a vGPU are not documented: they follow the names of the vSphere API.
#include "base/core/text.hpp"
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/vgpu_profile.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::hypervisor {
namespace {

void add_line(std::string& text, std::string_view key, std::string_view value) {
  text += fmt::format("{} = \"{}\"\n", key, value);
}

// ESXi writes the address in decimal: 0000:3b:00.0 is 00000:059:00.0.
std::string esxi_address(const model::PciAddress& at) {
  return fmt::format("{:05}:{:03}:{:02}.{}", at.domain, at.bus, at.device, at.function);
}

void add_common(const VmSpec& vm, std::string& text) {
  const auto memory = fmt::format("{}", vm.memory_bytes / kMiB);
  add_line(text, "displayName", vm.name);
  add_line(text, "virtualHW.version", "20");
  add_line(text, "firmware", "efi");
  add_line(text, "chipset.motherboardLayout", "acpi");
  add_line(text, "numvcpus", fmt::format("{}", vm.cpus));
  add_line(text, "memSize", memory);
  add_line(text, "sched.mem.min", memory);
  add_line(text, "sched.mem.minSize", memory);
  add_line(text, "sched.mem.pin", "TRUE");
}

void add_mmio_lines(std::span<const GuestGpu> gpus, std::string& text) {
  if (!esxi_needs_64bit(gpus)) return;
  add_line(text, "pciPassthru.use64bitMMIO", "TRUE");
  add_line(text, "pciPassthru.64bitMMIOSizeGB", fmt::format("{}", esxi_window_gb(gpus)));
}

void add_function(int number, const model::PciAddress& at, const GuestGpu& gpu, std::string& text) {
  const auto key = fmt::format("pciPassthru{}.", number);
  add_line(text, key + "present", "TRUE");
  add_line(text, key + "id", esxi_address(at));
  if (at != gpu.address) return;  // the ids of the card's audio function are not known here
  add_line(text, key + "deviceId", fmt::format("0x{:04x}", gpu.device));
  add_line(text, key + "vendorId", fmt::format("0x{:04x}", gpu.vendor));
}

std::set<int> host_nodes(const VmSpec& vm) {
  std::set<int> nodes;
  for (const auto& gpu : vm.gpus) {
    if (gpu.numa_node) nodes.insert(*gpu.numa_node);
  }
  return nodes;
}

// numaNode counts the nodes of the virtual machine. It has node 0; which others, is up to ESXi.
void add_devices(const VmSpec& vm, std::string& text) {
  const bool one_node = host_nodes(vm).size() <= 1;
  int number = 0;
  const auto add = [&](const model::PciAddress& at, const GuestGpu& gpu) {
    add_function(number, at, gpu, text);
    if (one_node) add_line(text, fmt::format("pciPassthru{}.numaNode", number), "0");
    ++number;
  };
  for (const auto& gpu : vm.gpus) {
    add(gpu.address, gpu);
    for (const auto& companion : gpu.companions) add(companion, gpu);
  }
}

std::string note_on_nodes(const VmSpec& vm) {
  const auto nodes = host_nodes(vm);
  if (nodes.size() <= 1) {
    return "not verified on ESXi: pciPassthruN.numaNode, the NUMA node of the virtual machine that "
           "the device is on. The vSphere API has it as numaNode of a device";
  }
  return fmt::format(
      "the GPUs are on the NUMA nodes {} of the host: in the vSphere client give the virtual "
      "machine as many (CPU Topology) and assign each device to its node. Its line is "
      "pciPassthruN.numaNode, not verified on ESXi",
      fmt::join(nodes, ", "));
}

WrittenConfig passthrough_lines(const VmSpec& vm) {
  WrittenConfig config;
  add_common(vm, config.text);
  add_mmio_lines(vm.gpus, config.text);
  add_devices(vm, config.text);
  config.notes = {
      "ESXi also wants pciPassthruN.systemId, which it fills in when the device is added in the "
      "vSphere client; by hand: esxcli system uuid get",
      "on the host: in the firmware VT-d or AMD-Vi, SR-IOV and memory mapped I/O above 4 GB on; "
      "the GPU toggled to passthrough, then one restart of the host",
      "a virtual machine with a whole GPU has no vMotion, no suspend and no snapshot of its memory",
      "the chipset line needs EFI firmware and virtual hardware 20 (ESXi 8.0)", note_on_nodes(vm)};
  return config;
}

Result<WrittenConfig> vgpu_lines(const VmSpec& vm) {
  GANTRY_TRY(const auto profile, parse_vgpu_profile(vm.vgpu_profile));
  const auto name = to_lower(vm.vgpu_profile);
  if (!name.starts_with("grid_") && !name.starts_with("nvidia_")) {
    return Error(Errc::Invalid,
                 fmt::format("`{0}` is not ESXi's name of the profile, which begins with grid_ or "
                             "nvidia_; the vSphere client lists the names: --vgpu grid_{0}",
                             name));
  }
  if (!vm.gpus.empty()) {
    return Error(Errc::Invalid,
                 "a virtual machine has whole GPUs or vGPUs, not both; leave --vgpu or the GPUs "
                 "out");
  }
  WrittenConfig config;
  add_common(vm, config.text);
  const auto gpu = gpu_of_profile(profile);
  add_mmio_lines({&gpu, 1}, config.text);
  add_line(config.text, "pciPassthru0.present", "TRUE");
  add_line(config.text, "pciPassthru0.virtualDev", "vmiop");
  add_line(config.text, "pciPassthru0.vgpu", name);
  config.notes = {
      "on the host: NVIDIA's vGPU manager for this ESXi release (a VIB), and Host Graphics set to "
      "Shared Direct; restart Xorg or the host afterwards",
      "in the guest: the driver of the same vGPU release as the manager, or of the branch before "
      "it; the plain data-centre driver does not find a vGPU",
      "the lines virtualDev and vgpu follow the vSphere API and are not documented for .vmx files: "
      "add the vGPU in the vSphere client and compare",
      fmt::format("licence: profiles of series {} need {}", profile.series,
                  licence_of(profile.series)),
      "a GPU that is toggled to passthrough offers no vGPU: use one or the other on a card"};
  return config;
}

}  // namespace

Result<WrittenConfig> write_esxi(const VmSpec& vm) {
  if (vm.firmware == Firmware::Bios) {
    return Error(Errc::Unsupported,
                 "ESXi needs EFI firmware for a large GPU and for chipset.motherboardLayout; leave "
                 "--firmware bios out");
  }
  if (!vm.vgpu_profile.empty()) return vgpu_lines(vm);
  for (const auto& gpu : vm.gpus) {
    if (gpu.is_vgpu()) {
      return Error(Errc::Unsupported,
                   "vGPUs of Linux do not exist on ESXi; name the profile: --vgpu grid_t4-8q");
    }
  }
  return passthrough_lines(vm);
}

}  // namespace gantry::hypervisor
