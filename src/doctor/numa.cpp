// SPDX-License-Identifier: Apache-2.0
// Where the GPUs are in the machine's memory layout.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::string_view kTensorFlow =
    "TensorFlow says: \"successful NUMA node read from SysFS had negative value (-1), but there "
    "must "
    "be at least one NUMA node, so returning NUMA node zero\".";

std::string hypervisor_remedy(const Guest& guest) {
  const std::string vmware =
      "VMware: set chipset.motherboardLayout = \"acpi\" in the VM's .vmx and start it again";
  const std::string qemu =
      "QEMU: put the GPU behind a bridge with a node: -device "
      "pxb-pcie,id=gpubus,bus_nr=128,bus=pcie.0,numa_node=0 -device "
      "pcie-root-port,id=gpuport,bus=gpubus,chassis=9 -device vfio-pci,host=BDF,bus=gpuport";
  switch (guest.hypervisor) {
    case Hypervisor::Vmware: return vmware;
    case Hypervisor::Qemu: return qemu;
    case Hypervisor::None: return "update the machine's firmware (BIOS)";
    default: return vmware + "; " + qemu;
  }
}

std::string remedy_of(const Facts& f, const std::string& file) {
  const auto nodes = f.online_numa_nodes();
  const auto node = nodes.size() == 1 ? fmt::to_string(nodes.front()) : std::string("NODE");
  return fmt::format("{}; until then, lost at reboot: echo {} | sudo tee {}",
                     hypervisor_remedy(f.guest()), node, file);
}

Finding judge_unknown(const Facts& f) {
  std::vector<Evidence> unknown;
  std::vector<Evidence> known;
  bool file_missing = false;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/numa_node";
    const auto text = f.value(path);
    if (text && parse_u64(*text)) {
      known.push_back({path, *text});
    } else {
      file_missing = file_missing || !text;
      unknown.push_back({path, text.value_or("(absent)")});
    }
  }
  if (unknown.empty() && known.empty()) return skip("no GPU on the bus");
  if (unknown.empty()) return ok("every GPU's NUMA node is known", known);
  const auto nodes = f.online_numa_nodes();
  unknown.push_back(f.read("/sys/devices/system/node/online"));
  if (file_missing) {
    return info("the kernel does not say to which NUMA node the GPU belongs", unknown)
        .because("This kernel was built without CONFIG_NUMA: there is one node and nothing to do.")
        .advise("grep CONFIG_NUMA= /boot/config-$(uname -r)");
  }
  const std::string who =
      f.guest().is_virtual() ? "The hypervisor gives the guest" : "The firmware gives the kernel";
  const auto remedy = remedy_of(f, unknown.front().source);
  if (nodes.size() > 1) {
    return warn(fmt::format("NUMA node of the GPU is -1 on a machine with {} nodes", nodes.size()),
                unknown)
        .because(fmt::format("{} no ACPI _PXM for the GPU, so memory and threads may be placed on "
                             "the far node. {}",
                             who, kTensorFlow))
        .advise(remedy);
  }
  return info("NUMA node of the GPU is -1; harmless with one node", unknown)
      .because(fmt::format("{} no ACPI _PXM for the GPU. With one node nothing is slower. {}", who,
                           kTensorFlow))
      .advise(remedy);
}

// Only where there is nothing to choose from.
std::vector<Action> fix_unknown(const Facts& f) {
  const auto nodes = f.online_numa_nodes();
  if (nodes.size() != 1) return {};
  std::vector<Action> actions;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/numa_node";
    if (f.value(path) == "-1") {
      actions.emplace_back(WriteValue{path, fmt::to_string(nodes.front())});
    }
  }
  return actions;
}

Finding judge_memory_only(const Facts& f) {
  const auto text = f.value("/sys/devices/system/node/has_cpu");
  if (!text) return skip("this kernel does not list NUMA nodes with processors");
  const auto with_cpus = parse_number_list(*text);
  std::vector<Evidence> read{{"/sys/devices/system/node/has_cpu", *text}};
  bool any = false;
  for (const auto& gpu : f.gpu_functions()) {
    const auto node = parse_u64(f.value(pci_path(gpu.address) + "/numa_node").value_or(""));
    if (!node) continue;
    any = true;
    if (std::find(with_cpus.begin(), with_cpus.end(), static_cast<int>(*node)) != with_cpus.end())
      continue;
    read.push_back({pci_path(gpu.address) + "/numa_node", fmt::to_string(*node)});
    return warn(
        fmt::format("{} is on node {}, which has no processors", gpu.address.sysfs(), *node), read);
  }
  if (!any) return skip("no GPU with a known NUMA node");
  return ok("every GPU's node has processors", read);
}

constexpr Check kChecks[] = {
    {.id = "numa.unknown",
     .reference = "H15",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "every GPU's NUMA node is known",
     .reads = "/sys/bus/pci/devices/*/numa_node, /sys/devices/system/node/online",
     .cause = "Firmware or hypervisor give no ACPI _PXM for the GPU. TensorFlow says: \"successful "
              "NUMA node read from SysFS had negative value (-1)\".",
     .remedy =
         "VMware: chipset.motherboardLayout = \"acpi\"; QEMU: pxb-pcie with numa_node; metal: "
         "firmware update; until then: echo NODE | sudo tee "
         "/sys/bus/pci/devices/BDF/numa_node",
     .judge = judge_unknown,
     .fix = fix_unknown},
    {.id = "numa.memory-only",
     .reference = "H16",
     .area = Area::Hardware,
     .title = "every GPU's NUMA node has processors",
     .reads = "/sys/devices/system/node/has_cpu, /sys/bus/pci/devices/*/numa_node",
     .cause = "Coherent GPU memory was put online as a NUMA node of its own, or the node's "
              "processors are offline: affinity by node finds none.",
     .remedy = "echo 'options nvidia NVreg_CoherentGPUMemoryMode=driver' | sudo tee "
               "/etc/modprobe.d/nvidia-coherent.conf && sudo reboot",
     .judge = judge_memory_only},
};

}  // namespace

std::span<const Check> numa_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
