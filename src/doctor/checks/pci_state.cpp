// SPDX-License-Identifier: Apache-2.0
// The state of each card: link, power, interrupt, reset.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

Finding judge_link_width(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address);
    const auto current = parse_u64(f.value(path + "/current_link_width").value_or(""));
    const auto most = parse_u64(f.value(path + "/max_link_width").value_or(""));
    // Virtual ports show 0 or 255: the width is then unknown.
    if (!current || !most || *current == 0 || *most == 0 || *current > 32 || *most > 32) continue;
    Evidence read{path + "/current_link_width", fmt::format("{} of {}", *current, *most)};
    if (*current < *most) {
      tally.found(fmt::format("{} (x{} of x{})", gpu.address.sysfs(), *current, *most),
                  std::move(read));
    } else {
      tally.good(std::move(read));
    }
  }
  if (tally.empty()) return skip("the link width is not shown");
  if (!tally.any_bad()) return ok("every link has its full width", tally.well);
  return warn(fmt::format("too few lanes: {}", tally.who()), tally.bad);
}

Finding judge_power(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address);
    const auto control = f.value(path + "/power/control");
    if (!control) continue;
    const auto status = f.value(path + "/power/runtime_status").value_or("");
    const auto state = f.value(path + "/power_state").value_or("");
    const bool asleep = status == "suspended" || state.starts_with("D3");
    if (*control == "auto" && asleep) {
      tally.found(gpu.address.sysfs(),
                  {path + "/power/control", fmt::format("auto, {} {}", status, state)});
    } else {
      tally.good({path + "/power/control", *control});
    }
  }
  if (tally.empty()) return skip("no GPU has power/control");
  if (!tally.any_bad()) return ok("no GPU is asleep", tally.well);
  return warn(fmt::format("put to sleep when idle: {}", tally.who()), tally.bad)
      .advise(tally.command("echo on | sudo tee /sys/bus/pci/devices/@/power/control"));
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
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    if (gpu.driver != "nvidia") continue;
    const auto path = pci_path(gpu.address);
    const auto irq = f.value(path + "/irq");
    if (!irq) continue;
    const auto vectors = f.host().list(path + "/msi_irqs");
    const bool has_vectors = vectors.ok() && !vectors->empty();
    if (*irq == "0" && !has_vectors) {
      tally.found(gpu.address.sysfs(), {path + "/irq", *irq});
    } else {
      tally.good({path + "/irq", *irq});
    }
  }
  if (tally.empty()) return skip("no GPU on the nvidia driver shows its interrupt");
  if (!tally.any_bad()) return ok("every GPU has an interrupt", tally.well);
  return warn(fmt::format("no interrupt for {}", tally.who()), tally.bad);
}

Finding judge_reset_method(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/reset_method";
    const auto method = f.value(path);
    if (!method) continue;
    if (contains(*method, "flr") || contains(*method, "bus")) {
      tally.good({path, *method});
    } else {
      tally.found(gpu.address.sysfs(), {path, *method});
    }
  }
  if (tally.empty()) return skip("this kernel does not show reset methods");
  if (!tally.any_bad()) return ok("every GPU can be reset", tally.well);
  return info(fmt::format("neither FLR nor a bus reset for {}", tally.who()), tally.bad);
}

constexpr Check kPciStateChecks[] = {
    {.id = "pci.link-width",
     .reference = "H4",
     .area = Area::Hardware,
     .title = "every PCIe link has its full width",
     .reads = "/sys/bus/pci/devices/*/{current,max}_link_width",
     .cause =
         "A slot with fewer lanes, a bad riser or dirty contacts. Copies are slow. (The speed is "
         "not checked, because idle GPUs lower it.)",
     .remedy = "nvidia-smi -q -d PCIE  # under load; then reseat the card or move it",
     .judge = judge_link_width},
    {.id = "pci.power",
     .reference = "H35",
     .area = Area::Hardware,
     .fix_class = FixClass::Automatic,
     .title = "no GPU sleeps when idle",
     .reads = "/sys/bus/pci/devices/*/{power/control,power/runtime_status,power_state}",
     .cause = "Runtime power management is on: the next program waits for the card, and some cards "
              "never wake up.",
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
     .judge = judge_reset_method},
};

}  // namespace

std::span<const Check> pci_state_checks() {
  return kPciStateChecks;
}

}  // namespace gantry::doctor
