// SPDX-License-Identifier: Apache-2.0
// The cards as the PCI bus shows them.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

constexpr std::string_view kNoGpu = "there is no NVIDIA GPU on the PCI bus";

Finding judge_present(const Facts& f) {
  const auto gpus = f.gpu_functions();
  std::vector<Evidence> evidence;
  for (const auto& gpu : gpus) {
    evidence.push_back({pci_path(gpu.address), fmt::format("{:04x}:{:04x} class {:06x}", gpu.vendor,
                                                           gpu.device, gpu.class_code)});
  }
  if (!gpus.empty()) return ok(fmt::format("{} GPU(s) on the bus", gpus.size()), evidence);
  if (f.guest().wsl) return skip("WSL shows no GPU on its PCI bus");
  return fail(std::string(kNoGpu), {{"/sys/bus/pci/devices", "no function 10de with class 03"}});
}

Finding judge_alive(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/config";
    const auto config = f.host().read(path, 65536);
    if (!config.ok() || config->size() < 4) continue;
    const auto head = std::string_view(*config).substr(0, 4);
    if (head == "\xff\xff\xff\xff") {
      return fail(
          fmt::format("{} answers with all ones: it has fallen off the bus", gpu.address.sysfs()),
          {{path, "ff ff ff ff"}});
    }
    read.push_back({path, "readable"});
  }
  if (read.empty()) return skip("no GPU's configuration space could be read");
  return ok("every GPU answers on the bus", read);
}

struct Bar {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t flags = 0;
};

constexpr std::uint64_t kMemory = 0x200;       // IORESOURCE_MEM
constexpr std::uint64_t kUnset = 0x2000'0000;  // IORESOURCE_UNSET: the kernel found no room

std::vector<Bar> parse_bars(std::string_view text) {
  std::vector<Bar> bars;
  for (auto line : lines(text)) {
    const auto f = split(trim(line), ' ');
    if (f.size() != 3 || bars.size() == 6) break;
    const auto start = parse_u64(f[0], 0);
    const auto end = parse_u64(f[1], 0);
    const auto flags = parse_u64(f[2], 0);
    if (!start || !end || !flags) break;
    bars.push_back({*start, *end, *flags});
  }
  return bars;
}

Finding judge_bars(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/resource";
    const auto text = f.host().read(path, 65536);
    if (!text.ok()) continue;
    const auto bars = parse_bars(*text);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      const bool missing =
          (bars[i].flags & kMemory) != 0 && (bars[i].start == 0 || (bars[i].flags & kUnset) != 0);
      const bool no_registers = i == 0 && bars[i].flags == 0;
      if (!missing && !no_registers) continue;
      return fail(fmt::format("BAR {} of {} has no address", i, gpu.address.sysfs()),
                  {{path, fmt::format("line {}: {:#x} {:#x} {:#x}", i + 1, bars[i].start,
                                      bars[i].end, bars[i].flags)}});
    }
    read.push_back({path, fmt::format("{} BARs assigned",
                                      std::count_if(bars.begin(), bars.end(), [](const Bar& bar) {
                                        return bar.flags != 0;
                                      }))});
  }
  if (read.empty()) return skip("no GPU's resource file could be read");
  return ok("all memory BARs are assigned", read);
}

constexpr Check kChecks[] = {
    {.id = "pci.present",
     .reference = "H1",
     .area = Area::Hardware,
     .title = "an NVIDIA GPU is on the PCI bus",
     .reads = "/sys/bus/pci/devices/*/{vendor,class}",
     .cause = "The card is absent, without power, in a disabled slot, or was not given to this VM. "
              "Programs say \"No devices were found\" or \"no CUDA-capable device\".",
     .remedy = "lspci -nn -d 10de:  # nothing: reseat the card, enable the slot, or attach the GPU "
               "to the VM",
     .judge = judge_present},
    {.id = "pci.alive",
     .reference = "H2",
     .area = Area::Hardware,
     .title = "every GPU answers on the bus",
     .reads = "/sys/bus/pci/devices/*/config",
     .cause = "Power, riser, heat, or a failed return from a sleep state (Xid 79).",
     .remedy = "sudo reboot  # if it comes back: check power cables, riser and temperature",
     .judge = judge_alive},
    {.id = "pci.bars",
     .reference = "H3",
     .area = Area::Hardware,
     .title = "every GPU's memory windows have addresses",
     .reads = "/sys/bus/pci/devices/*/resource",
     .cause = "The firmware or the hypervisor leaves no room above 4 GiB for the GPU's memory. The "
              "driver then says \"This PCI I/O region assigned to your NVIDIA device is invalid\".",
     .remedy = "enable \"Above 4G decoding\" in the firmware, or boot with pci=realloc; VM: EFI "
               "firmware and a larger 64-bit MMIO window (VMware: pciPassthru.use64bitMMIO=TRUE, "
               "pciPassthru.64bitMMIOSizeGB; QEMU with OVMF: -fw_cfg "
               "name=opt/ovmf/X-PciMmio64Mb,string=524288)",
     .judge = judge_bars},
};

}  // namespace

std::span<const Check> pci_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
