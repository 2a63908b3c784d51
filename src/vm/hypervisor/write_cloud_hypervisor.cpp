// SPDX-License-Identifier: Apache-2.0
// cloud-hypervisor: a shell script. One PCI segment for each NUMA node: a segment has the ACPI _PXM
// from which the guest learns the GPU's node.
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

std::string memory_zones(const VmSpec& vm, const std::vector<GuestNode>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += fmt::format(" id=mem{},size={}M,shared=on", i, nodes[i].memory_bytes / kMiB);
    if (vm.huge_pages == HugePages::Size1G) text += ",hugepages=on,hugepage_size=1G";
    if (vm.huge_pages == HugePages::Size2M) text += ",hugepages=on,hugepage_size=2M";
    if (nodes[i].host_node) text += fmt::format(",host_numa_node={}", *nodes[i].host_node);
  }
  return text;
}

std::string numa_values(const std::vector<GuestNode>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += fmt::format(" 'guest_numa_id={},cpus=[{}],memory_zones=[mem{}],pci_segments=[{}]'", i,
                        nodes[i].cpus(), i, i);
  }
  return text;
}

std::string device_values(const VmSpec& vm, const std::vector<GuestNode>& nodes) {
  std::string text;
  for (std::size_t segment = 0; segment < nodes.size(); ++segment) {
    for (const auto index : nodes[segment].gpus) {
      const auto& gpu = vm.gpus[index];
      text += fmt::format(" path={}/,pci_segment={}", sysfs_device(gpu), segment);
      for (const auto& companion : gpu.companions) {
        text += fmt::format(" path=/sys/bus/pci/devices/{}/,pci_segment={}", companion.sysfs(),
                            segment);
      }
    }
  }
  return text;
}

}  // namespace

Result<WrittenConfig> write_cloud_hypervisor(const VmSpec& vm) {
  if (vm.iommufd) {
    return Error(Errc::Unsupported, "--iommufd is for qemu and libvirt only; leave it out");
  }
  GANTRY_TRY(const auto nodes, guest_nodes(vm));
  WrittenConfig config;
  config.text = fmt::format(
      "#!/bin/sh\nulimit -l {}\nexec cloud-hypervisor \\\n  --platform num_pci_segments={},uuid={} "
      "\\\n  --cpus boot={} \\\n  --memory size=0 \\\n  --memory-zone{} \\\n  --numa{} \\\n"
      "  --device{} \\\n  --console off --serial tty\n",
      locked_memory(vm.memory_bytes) / 1024, nodes.size(), vm_uuid(vm), vm.cpus,
      memory_zones(vm, nodes), numa_values(nodes), device_values(vm, nodes));
  config.notes.emplace_back("add --kernel or --firmware, --disk and --net to the command");
  config.notes.emplace_back(
      "cloud-hypervisor sizes the window for BARs by itself, from the processor's address bits");
  add_linux_notes(vm, config);
  return config;
}

}  // namespace gantry::hypervisor
