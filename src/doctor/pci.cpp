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

Finding judge_link_width(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address);
    const auto current = parse_u64(f.value(path + "/current_link_width").value_or(""));
    const auto most = parse_u64(f.value(path + "/max_link_width").value_or(""));
    // Virtual ports show 0 or 255: nothing is known then.
    if (!current || !most || *current == 0 || *most == 0 || *current > 32 || *most > 32) continue;
    read.push_back({path + "/current_link_width", fmt::format("{} of {}", *current, *most)});
    if (*current < *most) {
      return warn(fmt::format("{} runs at x{} of x{}", gpu.address.sysfs(), *current, *most), read);
    }
  }
  if (read.empty()) return skip("the link width is not shown");
  return ok("every link has its full width", read);
}

Finding judge_power(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address);
    const auto control = f.value(path + "/power/control");
    if (!control) continue;
    const auto status = f.value(path + "/power/runtime_status").value_or("");
    const auto state = f.value(path + "/power_state").value_or("");
    read.push_back({path + "/power/control", *control});
    const bool asleep = status == "suspended" || state.starts_with("D3");
    if (*control == "auto" && asleep) {
      read.push_back({path + "/power/runtime_status", status + " " + state});
      return warn(fmt::format("{} is put to sleep when idle", gpu.address.sysfs()), read)
          .advise(fmt::format("echo on | sudo tee {}/power/control", path));
    }
  }
  if (read.empty()) return skip("no GPU has power/control");
  return ok("no GPU is asleep", read);
}

std::vector<Action> fix_power(const Facts& f) {
  std::vector<Action> actions;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/power/control";
    if (f.value(path) == "auto") actions.emplace_back(WriteValue{path, "on"});
  }
  return actions;
}

Finding judge_interrupt(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    if (gpu.driver != "nvidia") continue;
    const auto path = pci_path(gpu.address);
    const auto irq = f.value(path + "/irq");
    if (!irq) continue;
    read.push_back({path + "/irq", *irq});
    const auto vectors = f.host().list(path + "/msi_irqs");
    const bool has_vectors = vectors.ok() && !vectors->empty();
    if (*irq == "0" && !has_vectors) {
      return warn(fmt::format("{} has no interrupt", gpu.address.sysfs()), read);
    }
  }
  if (read.empty()) return skip("no GPU on the nvidia driver shows its interrupt");
  return ok("every GPU has an interrupt", read);
}

Finding judge_reset(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/reset_method";
    const auto method = f.value(path);
    if (!method) continue;
    read.push_back({path, *method});
    if (contains(*method, "flr") || contains(*method, "bus")) continue;
    return info(fmt::format("{} can be reset neither by FLR nor by its bus", gpu.address.sysfs()),
                read);
  }
  if (read.empty()) return skip("this kernel does not show reset methods");
  return ok("every GPU can be reset", read);
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
    {.id = "pci.link-width",
     .reference = "H4",
     .area = Area::Hardware,
     .title = "every PCIe link has its full width",
     .reads = "/sys/bus/pci/devices/*/{current,max}_link_width",
     .cause =
         "A slot wired for fewer lanes, a bad riser or dirty contacts. Copies are slow. (Speed "
         "is not judged: idle GPUs lower it.)",
     .remedy = "nvidia-smi -q -d PCIE  # under load; then reseat the card or move it",
     .judge = judge_link_width},
    {.id = "pci.power",
     .reference = "H35",
     .area = Area::Hardware,
     .fix_class = FixClass::Automatic,
     .title = "no GPU sleeps when idle",
     .reads = "/sys/bus/pci/devices/*/{power/control,power/runtime_status,power_state}",
     .cause = "Runtime power management is on: the next use waits for the card, and some never "
              "come back.",
     .remedy = "echo on | sudo tee /sys/bus/pci/devices/BDF/power/control",
     .judge = judge_power,
     .fix = fix_power},
    {.id = "pci.interrupt",
     .reference = "V3",
     .area = Area::Hardware,
     .title = "every GPU has an interrupt",
     .reads = "/sys/bus/pci/devices/*/{irq,msi_irqs}",
     .cause =
         "The hypervisor routes no interrupt to the guest, or message signalled interrupts are "
         "off: time-outs, Xid 62 or 119.",
     .remedy = "grep -i nvidia /proc/interrupts  # nothing: enable interrupt remapping on the host",
     .judge = judge_interrupt},
    {.id = "pci.reset",
     .reference = "V5",
     .area = Area::Hardware,
     .title = "every GPU can be reset between two owners",
     .reads = "/sys/bus/pci/devices/*/reset_method",
     .cause =
         "Without a function or bus reset a VM's second start fails (\"not ready after FLR\").",
     .remedy = "reboot the host between two VMs that use this GPU",
     .judge = judge_reset},
};

}  // namespace

std::span<const Check> pci_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
