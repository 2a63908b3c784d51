// SPDX-License-Identifier: Apache-2.0
// The cards on the PCI bus.
#include "base/core/bytes.hpp"
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"
#include "vm/hypervisor/known_cards.hpp"
#include "vm/hypervisor/mmio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::doctor {
namespace {

constexpr std::string_view kNoGpu = "there is no NVIDIA GPU on the PCI bus";

Finding judge_gpus_present(const Facts& f) {
  const auto gpus = f.gpu_functions();
  std::vector<Evidence> evidence;
  evidence.reserve(gpus.size());
  for (const auto& gpu : gpus) {
    evidence.push_back({pci_path(gpu.address), fmt::format("{:04x}:{:04x} class {:06x}", gpu.vendor,
                                                           gpu.device, gpu.class_code)});
  }
  if (!gpus.empty()) {
    return ok(fmt::format("{} GPU{} on the bus", gpus.size(), gpus.size() == 1 ? "" : "s"),
              evidence);
  }
  if (f.guest().wsl) return skip("WSL shows no GPU on its PCI bus");
  return fail(std::string(kNoGpu), {{"/sys/bus/pci/devices", "no function 10de with class 03"}});
}

Finding judge_alive(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/config";
    const auto config = f.host().read(path, 65536);
    if (!config.ok() || config->size() < 4) continue;
    if (std::string_view(*config).substr(0, 4) == "\xff\xff\xff\xff") {
      tally.found(gpu.address.sysfs(), {path, "ff ff ff ff"});
    } else {
      tally.good({path, "readable"});
    }
  }
  if (tally.empty()) return skip("no GPU's configuration space could be read");
  if (!tally.any_bad()) return ok("every GPU answers on the bus", tally.well);
  return fail(fmt::format("{}: reads all ones, has fallen off the bus", tally.who()), tally.bad);
}

struct Bar {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t flags = 0;
};

constexpr std::uint64_t kMemory = 0x200;       // IORESOURCE_MEM
constexpr std::uint64_t kUnset = 0x2000'0000;  // IORESOURCE_UNSET: no address was found

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

std::optional<std::size_t> bar_without_address(const std::vector<Bar>& bars) {
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const bool missing =
        (bars[i].flags & kMemory) != 0 && (bars[i].start == 0 || (bars[i].flags & kUnset) != 0);
    const bool no_registers = i == 0 && bars[i].flags == 0;
    if (missing || no_registers) return i;
  }
  return std::nullopt;
}

// A BAR without an address still has its size: start is 0, end is the last byte.
hypervisor::GuestGpu card_of(const model::PciFunction& function, const std::vector<Bar>& bars) {
  auto card = hypervisor::card_by_device_id(function.device).value_or(hypervisor::GuestGpu{});
  if (!card.bars.empty()) return card;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if ((bars[i].flags & kMemory) == 0 || bars[i].end <= bars[i].start) continue;
    card.bars.push_back(
        {.index = static_cast<int>(i), .bytes = bars[i].end - bars[i].start + 1, .is_64bit = true});
  }
  return card;
}

// What the host did not set: the settings, with sizes for the cards of this guest.
std::string host_settings(const Facts& f, const std::vector<hypervisor::GuestGpu>& cards) {
  const bool efi = f.host().exists("/sys/firmware/efi");
  const auto vmware = fmt::format(
      "VMware: in the VM's .vmx set {}pciPassthru.use64bitMMIO = \"TRUE\" and "
      "pciPassthru.64bitMMIOSizeGB = \"{}\"",
      efi ? "" : "firmware = \"efi\", ", hypervisor::esxi_window_gb(cards));
  const auto qemu = fmt::format(
      "QEMU: start it with {}-cpu host,host-phys-bits=on -fw_cfg "
      "name=opt/ovmf/X-PciMmio64Mb,string={}",
      efi ? "" : "OVMF, ", hypervisor::mmio_window(cards) / kMiB);
  switch (f.guest().hypervisor) {
    case Hypervisor::Vmware: return vmware;
    case Hypervisor::Qemu: return qemu;
    default: return vmware + "; " + qemu;
  }
}

Finding judge_bars(const Facts& f) {
  Tally tally;
  std::vector<hypervisor::GuestGpu> cards;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/resource";
    const auto text = f.host().read(path, 65536);
    if (!text.ok()) continue;
    const auto bars = parse_bars(*text);
    cards.push_back(card_of(gpu, bars));
    if (const auto at = bar_without_address(bars)) {
      const auto& bar = bars[*at];
      tally.found(fmt::format("BAR {} of {}", *at, gpu.address.sysfs()),
                  {path, fmt::format("line {}: {:#x} {:#x} {:#x}", *at + 1, bar.start, bar.end,
                                     bar.flags)});
      continue;
    }
    const auto assigned =
        std::count_if(bars.begin(), bars.end(), [](const Bar& bar) { return bar.flags != 0; });
    tally.good({path, fmt::format("{} BARs assigned", assigned)});
  }
  if (tally.empty()) return skip("no GPU's resource file could be read");
  if (!tally.any_bad()) return ok("all memory BARs are assigned", tally.well);
  auto finding = fail(fmt::format("no address for {}", tally.who()), tally.bad);
  finding.remedy = f.guest().is_virtual()
                       ? host_settings(f, cards)
                       : "enable \"Above 4G decoding\" in the firmware, or boot with pci=realloc";
  return finding;
}

// The host sets the MMIO window of a guest.
Steps fix_bars(const Facts& f) {
  if (f.guest().is_virtual()) return {};
  return add_kernel_argument(f, "pci=realloc");
}

constexpr Check kPciChecks[] = {
    {.id = "pci.present",
     .reference = "H1",
     .area = Area::Hardware,
     .title = "an NVIDIA GPU is on the PCI bus",
     .reads = "/sys/bus/pci/devices/*/{vendor,class}",
     .cause =
         "The card is absent, has no power, is in a disabled slot, or is not attached to this VM. "
         "Programs say \"No devices were found\" or \"no CUDA-capable device\".",
     .remedy = "lspci -nn -d 10de:  # nothing: reseat the card, enable the slot, or attach the GPU "
               "to the VM",
     .judge = judge_gpus_present},
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
     .fix_class = FixClass::OnRequest,
     .title = "every GPU's memory windows have addresses",
     .reads = "/sys/bus/pci/devices/*/resource",
     .cause =
         "The firmware or the hypervisor leaves no addresses above 4 GiB for the GPU's memory. The "
         "driver then says \"This PCI I/O region assigned to your NVIDIA device is invalid\".",
     .remedy = "enable \"Above 4G decoding\" in the firmware, or boot with pci=realloc; VM: EFI "
               "firmware and a larger 64-bit MMIO window (VMware: pciPassthru.use64bitMMIO=TRUE, "
               "pciPassthru.64bitMMIOSizeGB; QEMU with OVMF: -fw_cfg "
               "name=opt/ovmf/X-PciMmio64Mb,string=524288)",
     .judge = judge_bars,
     .fix = fix_bars,
     .by_hand = "the window of a virtual machine is set on its host; and without grub or grubby, "
                "gantry cannot set kernel arguments",
     .afterwards = "reboot; if that does not help, enable \"Above 4G decoding\" in the firmware"},
};

}  // namespace

std::span<const Check> pci_checks() {
  return kPciChecks;
}

}  // namespace gantry::doctor
