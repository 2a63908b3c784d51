// SPDX-License-Identifier: Apache-2.0
// libvirt: a whole domain that `virsh define` accepts.
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::hypervisor {
namespace {

constexpr int kDomainBusesOfNode = 32;  // bus numbers for one expander bus and its root ports
// libvirt's limit is for the whole QEMU process: beside the guest's memory it has caches, page
// tables and the copies of the firmware.
constexpr std::uint64_t kProcessBytes = 4 * kGiB;

std::string host_address(const model::PciAddress& at) {
  return fmt::format(
      "<address domain='0x{:04x}' bus='0x{:02x}' slot='0x{:02x}' function='0x{:x}'/>", at.domain,
      at.bus, at.device, at.function);
}

std::string guest_address(std::size_t bus, std::size_t slot, int function, bool several) {
  return fmt::format(
      "<address type='pci' domain='0x0000' bus='0x{:02x}' slot='0x{:02x}' function='0x{:x}'{}/>",
      bus, slot, function, several ? " multifunction='on'" : "");
}

std::string memory_part(const VmSpec& vm) {
  std::string text = fmt::format("  <memory unit='KiB'>{}</memory>\n", vm.memory_bytes / 1024);
  text += "  <memoryBacking>\n";
  if (vm.huge_pages != HugePages::None) {
    text += fmt::format("    <hugepages><page size='{}' unit='KiB'/></hugepages>\n",
                        vm.huge_pages == HugePages::Size1G ? 1048576 : 2048);
  }
  text += "    <locked/>\n  </memoryBacking>\n";
  return text +
         fmt::format("  <memtune>\n    <hard_limit unit='KiB'>{}</hard_limit>\n  </memtune>\n",
                     (vm.memory_bytes + kProcessBytes) / 1024);
}

// Pins each guest node's memory and processors to the node of its GPUs.
std::string placement_part(const VmSpec& vm, const std::vector<GuestNode>& nodes) {
  std::string pins;
  std::string memory;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& node = nodes[i];
    for (int cpu = node.first_cpu; cpu <= node.last_cpu && !node.host_cpus.empty(); ++cpu) {
      pins += fmt::format("    <vcpupin vcpu='{}' cpuset='{}'/>\n", cpu, node.host_cpus);
    }
    if (!node.host_node) continue;
    memory +=
        fmt::format("    <memnode cellid='{}' mode='strict' nodeset='{}'/>\n", i, *node.host_node);
  }
  auto text = fmt::format("  <vcpu placement='static'>{}</vcpu>\n", vm.cpus);
  if (!pins.empty()) text += fmt::format("  <cputune>\n{}  </cputune>\n", pins);
  if (!memory.empty()) text += fmt::format("  <numatune>\n{}  </numatune>\n", memory);
  return text;
}

std::string cpu_part(const std::vector<GuestNode>& nodes) {
  std::string cells;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    cells += fmt::format("      <cell id='{}' cpus='{}' memory='{}' unit='KiB'/>\n", i,
                         nodes[i].cpus(), nodes[i].memory_bytes / 1024);
  }
  return fmt::format(
      "  <cpu mode='host-passthrough' check='none'>\n    <maxphysaddr mode='passthrough'/>\n"
      "    <numa>\n{}    </numa>\n  </cpu>\n",
      cells);
}

std::string root_controller(const VmSpec& vm) {
  const auto window = mmio_window(vm.gpus);
  if (window <= kDefaultWindow) {
    return "    <controller type='pci' index='0' model='pcie-root'/>\n";
  }
  return fmt::format(
      "    <controller type='pci' index='0' model='pcie-root'>\n"
      "      <pcihole64 unit='KiB'>{}</pcihole64>\n    </controller>\n",
      window / 1024);
}

// `managed`: libvirt binds the card to VFIO and back. Where VFIO has it already, its owner will.
std::string pci_hostdev(const VmSpec& vm, const GuestGpu& gpu, const model::PciAddress& from,
                        const std::string& to) {
  const bool managed = !gpu.is_vgpu() && gpu.driver.find("vfio") == std::string::npos;
  const std::string rom = gpu.is_display() ? "" : "      <rom bar='off'/>\n";
  return fmt::format(
      "    <hostdev mode='subsystem' type='pci' managed='{}'>\n      <driver name='vfio'{}/>\n"
      "      <source>{}</source>\n{}      {}\n    </hostdev>\n",
      managed ? "yes" : "no", vm.iommufd ? " iommufd='yes'" : "", host_address(from), rom, to);
}

std::string gpu_hostdevs(const VmSpec& vm, const GuestGpu& gpu, std::size_t port) {
  if (gpu.attachment == Attachment::Mdev) {
    return fmt::format(
        "    <hostdev mode='subsystem' type='mdev' model='vfio-pci' display='off'>\n"
        "      <source><address uuid='{}'/></source>\n      {}\n    </hostdev>\n",
        gpu.mdev_uuid, guest_address(port, 0, 0, false));
  }
  auto text = pci_hostdev(vm, gpu, gpu.address, guest_address(port, 0, 0, !gpu.companions.empty()));
  int function = 0;
  for (const auto& companion : gpu.companions) {
    text += pci_hostdev(vm, gpu, companion, guest_address(port, 0, ++function, false));
  }
  return text;
}

// Controllers come first: an expander bus for each node, then a root port for each GPU on it.
std::string device_part(const VmSpec& vm, const std::vector<GuestNode>& nodes) {
  std::string text = root_controller(vm);
  std::string hostdevs;
  std::size_t next = nodes.size() + 1;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    text += fmt::format(
        "    <controller type='pci' index='{}' model='pcie-expander-bus'>\n"
        "      <target busNr='{}'>\n        <node>{}</node>\n      </target>\n      {}\n"
        "    </controller>\n",
        node + 1, kDomainBusesOfNode * (static_cast<int>(node) + 1), node,
        guest_address(0, 0x10 + node, 0, false));
    std::size_t slot = 0;
    for (const auto gpu : nodes[node].gpus) {
      text += fmt::format(
          "    <controller type='pci' index='{}' model='pcie-root-port'>\n"
          "      <target chassis='{}' port='0x{:x}'/>\n      {}\n    </controller>\n",
          next, next, slot, guest_address(node + 1, slot, 0, false));
      hostdevs += gpu_hostdevs(vm, vm.gpus[gpu], next);
      ++next;
      ++slot;
    }
  }
  return "  <devices>\n" + text + hostdevs +
         "    <console type='pty'/>\n    <memballoon model='none'/>\n  </devices>\n";
}

// libvirt reserves the names opt/ovmf/ of its own <sysinfo type='fwcfg'>, so QEMU is told directly.
std::string firmware_window(const VmSpec& vm) {
  const auto window = mmio_window(vm.gpus);
  if (window <= kDefaultWindow || vm.firmware == Firmware::Bios) return "";
  return fmt::format(
      "  <qemu:commandline>\n    <qemu:arg value='-fw_cfg'/>\n"
      "    <qemu:arg value='name=opt/ovmf/X-PciMmio64Mb,string={}'/>\n  </qemu:commandline>\n",
      window / kMiB);
}

// A virtual function with a vGPU stays with nvidia. libvirt before 10.0 knows vfio-pci alone.
bool has_vendor_vgpu(const VmSpec& vm) {
  return std::any_of(vm.gpus.begin(), vm.gpus.end(),
                     [](const GuestGpu& gpu) { return gpu.attachment == Attachment::VendorVfio; });
}

}  // namespace

Result<WrittenConfig> write_libvirt(const VmSpec& vm) {
  GANTRY_TRY(const auto nodes, guest_nodes(vm));
  const auto window = firmware_window(vm);
  const std::string space =
      window.empty() ? "" : " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'";
  WrittenConfig config;
  config.text = fmt::format(
      "<domain type='kvm'{}>\n  <name>{}</name>\n  <uuid>{}</uuid>\n{}{}"
      "  <os{}>\n    <type arch='x86_64' machine='q35'>hvm</type>\n  </os>\n"
      "  <features>\n    <acpi/>\n    <apic/>\n  </features>\n{}{}{}</domain>\n",
      space, vm.name, vm_uuid(vm), memory_part(vm), placement_part(vm, nodes),
      vm.firmware == Firmware::Efi ? " firmware='efi'" : "", cpu_part(nodes),
      device_part(vm, nodes), window);
  config.notes.emplace_back("add a disk and a network card to <devices>");
  if (has_vendor_vgpu(vm)) {
    config.notes.emplace_back(
        "this needs libvirt 10.0 or later: an older one says that the virtual function must be "
        "manually detached; there, use --for qemu");
  }
  add_linux_notes(vm, config);
  return config;
}

}  // namespace gantry::hypervisor
