// SPDX-License-Identifier: Apache-2.0
// The NUMA nodes of the GPUs.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace gantry::doctor {
namespace {

constexpr std::string_view kTensorFlow =
    "TensorFlow says: \"successful NUMA node read from SysFS had negative value (-1), but there "
    "must "
    "be at least one NUMA node, so returning NUMA node zero\".";

std::string hypervisor_remedy(const Guest& guest) {
  std::string vmware =
      "VMware: set chipset.motherboardLayout = \"acpi\" in the VM's .vmx and start it again";
  std::string qemu =
      "QEMU: put the GPU behind a bridge with a node: -device "
      "pxb-pcie,id=gpubus,bus_nr=128,bus=pcie.0,numa_node=0 -device "
      "pcie-root-port,id=gpuport,bus=gpubus,chassis=9, and give the GPU's vfio-pci bus=gpuport";
  switch (guest.hypervisor) {
    case Hypervisor::Vmware: return vmware;
    case Hypervisor::Qemu: return qemu;
    case Hypervisor::None: return "update the machine's firmware (BIOS)";
    default: return vmware + "; " + qemu;
  }
}

bool online(const Facts& f, int node) {
  const auto nodes = f.online_numa_nodes();
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// The NUMA node of a GPU whose file says -1: the only node, or the node of the bridge above it.
std::optional<int> likely_node(const Facts& f, const model::PciFunction& gpu) {
  const auto nodes = f.online_numa_nodes();
  if (nodes.size() == 1) return nodes.front();
  auto above = f.host().resolve(pci_path(gpu.address)).value_or("");
  while (contains(above, "/pci")) {
    above = above.substr(0, above.rfind('/'));
    const auto node = parse_u64(f.value(above + "/numa_node").value_or(""));
    if (node && *node < 4096 && online(f, static_cast<int>(*node))) return static_cast<int>(*node);
  }
  return std::nullopt;
}

std::string remedy_of(const Facts& f, const std::vector<model::PciFunction>& gpus) {
  const auto nodes = f.online_numa_nodes();
  std::string commands;
  for (const auto& gpu : gpus) {
    if (commands.size() > 2000) break;
    const auto node = likely_node(f, gpu);
    commands +=
        fmt::format("{}echo {} | sudo tee {}/numa_node", commands.empty() ? "" : " && ",
                    node.value_or(nodes.empty() ? 0 : nodes.front()), pci_path(gpu.address));
    if (!node) commands += fmt::format("  # the node of its socket: {}", fmt::join(nodes, " or "));
  }
  return fmt::format("{}; until then, lost at reboot: {}", hypervisor_remedy(f.guest()), commands);
}

// GPUs whose numa_node file says -1, and whether the kernel has that file at all.
struct UnknownNodes {
  std::vector<model::PciFunction> gpus;
  Tally tally;
  bool file_missing = false;
};

UnknownNodes find_unknown_numa_nodes(const Facts& f) {
  UnknownNodes found;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/numa_node";
    const auto text = f.value(path);
    if (text && parse_u64(*text)) {
      found.tally.good({path, *text});
      continue;
    }
    found.file_missing = found.file_missing || !text;
    found.gpus.push_back(gpu);
    found.tally.found(gpu.address.sysfs(), {path, text.value_or("(absent)")});
  }
  return found;
}

Finding judge_unknown(const Facts& f) {
  auto [gpus, tally, file_missing] = find_unknown_numa_nodes(f);
  if (tally.empty()) return skip("no GPU on the bus");
  if (!tally.any_bad()) return ok("every GPU's NUMA node is known", tally.well);
  const auto nodes = f.online_numa_nodes();
  tally.bad.push_back(f.read("/sys/devices/system/node/online"));
  if (file_missing) {
    return info("the kernel does not report the NUMA node of the GPU", tally.bad)
        .because("This kernel was built without CONFIG_NUMA: there is one node and nothing to do.")
        .advise("grep CONFIG_NUMA= /boot/config-$(uname -r)");
  }
  const std::string who =
      f.guest().is_virtual() ? "The hypervisor gives the guest" : "The firmware gives the kernel";
  const auto remedy = remedy_of(f, gpus);
  if (nodes.size() > 1) {
    return warn(fmt::format("NUMA node -1 on a machine with {} nodes: {}", nodes.size(),
                            tally.who()),
                tally.bad)
        .because(fmt::format("{} no ACPI _PXM for the GPU, so memory and threads may be placed on "
                             "the far node. {}",
                             who, kTensorFlow))
        .advise(remedy);
  }
  return info(fmt::format("NUMA node -1, harmless with one node: {}", tally.who()), tally.bad)
      .because(fmt::format("{} no ACPI _PXM for the GPU. With one node nothing is slower. {}", who,
                           kTensorFlow))
      .advise(remedy);
}

// Only if there is exactly one possible node.
Steps fix_unknown(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/numa_node";
    const auto node = f.value(path) == "-1" ? likely_node(f, gpu) : std::nullopt;
    if (node) steps.emplace_back(WriteValue{path, fmt::to_string(*node)});
  }
  return steps;
}

Finding judge_memory_only(const Facts& f) {
  const auto text = f.value("/sys/devices/system/node/has_cpu");
  if (!text) return skip("this kernel does not list NUMA nodes with processors");
  const auto with_cpus = parse_number_list(*text);
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/numa_node";
    const auto node = parse_u64(f.value(path).value_or(""));
    if (!node) continue;
    if (std::find(with_cpus.begin(), with_cpus.end(), static_cast<int>(*node)) == with_cpus.end()) {
      tally.found(fmt::format("{} (node {})", gpu.address.sysfs(), *node),
                  {path, fmt::to_string(*node)});
    } else {
      tally.good({path, fmt::to_string(*node)});
    }
  }
  if (tally.empty()) return skip("no GPU with a known NUMA node");
  if (!tally.any_bad()) return ok("every GPU's node has processors", tally.well);
  tally.bad.push_back({"/sys/devices/system/node/has_cpu", *text});
  return warn(fmt::format("on a node without processors: {}", tally.who()), tally.bad);
}

constexpr Check kNumaChecks[] = {
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
     .fix = fix_unknown,
     .by_hand = "several nodes are online, and the GPU's node is unknown",
     .afterwards = "lost at reboot"},
    {.id = "numa.memory-only",
     .reference = "H16",
     .area = Area::Hardware,
     .title = "every GPU's NUMA node has processors",
     .reads = "/sys/devices/system/node/has_cpu, /sys/bus/pci/devices/*/numa_node",
     .cause = "Coherent GPU memory was put online as a separate NUMA node, or the node's "
              "processors are offline: affinity by node finds no processor.",
     .remedy = "echo 'options nvidia NVreg_CoherentGPUMemoryMode=driver' | sudo tee "
               "/etc/modprobe.d/nvidia-coherent.conf && sudo reboot",
     .judge = judge_memory_only},
};

}  // namespace

std::span<const Check> numa_checks() {
  return kNumaChecks;
}

}  // namespace gantry::doctor
