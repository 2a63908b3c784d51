// SPDX-License-Identifier: Apache-2.0
// Which kernel driver holds each GPU.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"
#include "install/preflight/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::doctor {
namespace {

Evidence driver_of(const model::PciFunction& function) {
  return {pci_path(function.address) + "/driver",
          function.driver.empty() ? "(none)" : function.driver};
}

bool for_virtual_machines(const std::string& driver) {
  return contains(driver, "vfio");
}

Finding judge_nouveau(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    if (gpu.driver == "nouveau") {
      tally.found(gpu.address.sysfs(), driver_of(gpu));
    } else {
      tally.good(driver_of(gpu));
    }
  }
  if (tally.any_bad()) return fail(fmt::format("nouveau holds {}", tally.who()), tally.bad);
  if (f.module_loaded("nouveau")) {
    tally.good({"/sys/module/nouveau", "loaded"});
    return warn("nouveau is loaded together with the NVIDIA driver", tally.well);
  }
  if (tally.empty()) return skip("no GPU on the bus");
  return ok("nouveau is not loaded", tally.well);
}

// The text console uses nouveau's frame buffer and would keep it loaded.
void unbind_consoles(const Facts& f, Steps& steps) {
  const auto names = f.host().list("/sys/class/vtconsole");
  if (!names.ok()) return;
  for (const auto& name : *names) {
    const auto base = fmt::format("/sys/class/vtconsole/{}", name);
    const auto kind = f.value(base + "/name").value_or("");
    if (contains(kind, "frame buffer") && f.value(base + "/bind") == "1") {
      steps.emplace_back(WriteValue{base + "/bind", "0"});
    }
  }
}

// First fixes the next boot, which always works; then the running system.
Steps fix_nouveau(const Facts& f) {
  Steps steps{blacklist("/etc/modprobe.d/nvidia-no-nouveau.conf", "nouveau")};
  add(steps, rebuild_initramfs(f));
  unbind_consoles(f, steps);
  steps.emplace_back(RunProgram{{"modprobe", "-r", "nouveau"}});
  steps.emplace_back(LoadModule{"nvidia"});
  return steps;
}

bool foreign(const model::PciFunction& gpu) {
  return !gpu.driver.empty() && gpu.driver != "nvidia" && gpu.driver != "nouveau" &&
         !for_virtual_machines(gpu.driver);
}

// The module of a PCI driver; the names may differ: "NovaCore" is nova_core.
std::string module_of(const Facts& f, const std::string& driver) {
  const auto link = f.host().link(fmt::format("/sys/bus/pci/drivers/{}/module", driver));
  return link.ok() ? link->substr(link->rfind('/') + 1) : driver;
}

Finding judge_foreign(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    if (foreign(gpu)) {
      tally.found(fmt::format("{} ({})", gpu.address.sysfs(), gpu.driver), driver_of(gpu),
                  module_of(f, gpu.driver));
    } else {
      tally.good(driver_of(gpu));
    }
  }
  if (tally.empty()) return skip("no GPU on the bus");
  if (!tally.any_bad()) return ok("no other driver holds a GPU", tally.well);
  std::sort(tally.keys.begin(), tally.keys.end());
  tally.keys.erase(std::unique(tally.keys.begin(), tally.keys.end()), tally.keys.end());
  return fail(fmt::format("held by another driver: {}", tally.who()), tally.bad)
      .advise(preflight::then_reboot(
          tally.command("echo blacklist @ | sudo tee /etc/modprobe.d/nvidia-no-@.conf")));
}

Steps fix_foreign(const Facts& f) {
  Steps steps;
  std::set<std::string> modules;
  for (const auto& gpu : f.gpu_functions()) {
    const auto module = foreign(gpu) ? module_of(f, gpu.driver) : "";
    if (module.empty() || !modules.insert(module).second) continue;
    steps.emplace_back(blacklist(fmt::format("/etc/modprobe.d/nvidia-no-{}.conf", module), module));
  }
  if (!steps.empty()) add(steps, rebuild_initramfs(f));
  return steps;
}

Finding judge_unbound(const Facts& f) {
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded: see module.loaded");
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    if (gpu.driver.empty()) {
      tally.found(gpu.address.sysfs(), driver_of(gpu));
    } else {
      tally.good(driver_of(gpu));
    }
  }
  if (tally.empty()) return skip("no GPU on the bus");
  if (!tally.any_bad()) return ok("every GPU has a driver", tally.well);
  return fail(fmt::format("no driver is bound to {}", tally.who()), tally.bad)
      .advise(fmt::format("{}; sudo dmesg | grep NVRM",
                          tally.command("echo @ | sudo tee /sys/bus/pci/drivers_probe")));
}

Steps fix_unbound(const Facts& f) {
  Steps actions;
  for (const auto& gpu : f.gpu_functions()) {
    if (gpu.driver.empty()) {
      actions.emplace_back(WriteValue{"/sys/bus/pci/drivers_probe", gpu.address.sysfs()});
    }
  }
  return actions;
}

// A driver override to vfio is intended if vfio holds the GPU: see pci.passthrough.
bool leftover_override(const model::PciFunction& gpu) {
  if (gpu.driver_override.empty() || gpu.driver_override == "nvidia") return false;
  return gpu.driver != gpu.driver_override;
}

Finding judge_override(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/driver_override";
    Evidence read{path, gpu.driver_override.empty() ? "(null)" : gpu.driver_override};
    if (leftover_override(gpu)) {
      read.value += fmt::format(", driver {}", driver_of(gpu).value);
      tally.found(gpu.address.sysfs(), std::move(read));
    } else {
      tally.good(std::move(read));
    }
  }
  if (tally.empty()) return skip("no GPU on the bus");
  if (!tally.any_bad()) return ok("no left-over driver override", tally.well);
  return warn(fmt::format("reserved for a driver that does not hold it: {}", tally.who()),
              tally.bad)
      .advise(tally.command("echo | sudo tee /sys/bus/pci/devices/@/driver_override; echo @ | sudo "
                            "tee /sys/bus/pci/drivers_probe"));
}

Steps fix_override(const Facts& f) {
  Steps actions;
  for (const auto& gpu : f.gpu_functions()) {
    if (!leftover_override(gpu)) continue;
    actions.emplace_back(WriteValue{pci_path(gpu.address) + "/driver_override", "\n"});
    if (gpu.driver.empty()) {
      actions.emplace_back(WriteValue{"/sys/bus/pci/drivers_probe", gpu.address.sysfs()});
    }
  }
  return actions;
}

Finding judge_passthrough(const Facts& f) {
  Tally tally;
  for (const auto& gpu : f.gpu_functions()) {
    if (for_virtual_machines(gpu.driver)) {
      tally.found(gpu.address.sysfs(), driver_of(gpu));
    } else {
      tally.good(driver_of(gpu));
    }
  }
  if (tally.empty()) return skip("no GPU on the bus");
  if (!tally.any_bad()) return ok("no GPU is reserved for virtual machines", tally.well);
  return info(fmt::format("reserved for virtual machines: {}", tally.who()), tally.bad)
      .advise(
          "to give them back: " +
          tally.command("echo @ | sudo tee /sys/bus/pci/devices/@/driver/unbind; echo | sudo tee "
                        "/sys/bus/pci/devices/@/driver_override; echo @ | sudo tee "
                        "/sys/bus/pci/drivers_probe"));
}

// Returns true if a virtual machine has the group open: unbinding the GPU would then hang.
bool held_by_a_process(const Facts& f, int group) {
  const auto node = fmt::format("/dev/vfio/{}", group);
  for (const auto& process : f.processes()) {
    const auto directory = fmt::format("/proc/{}/fd", process.pid);
    const auto names = f.host().list(directory);
    if (!names.ok()) continue;
    const bool open = std::any_of(names->begin(), names->end(), [&](const std::string& name) {
      return f.host().link(fmt::format("{}/{}", directory, name)).value_or("") == node;
    });
    if (open) return true;
  }
  return false;
}

Steps fix_passthrough(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.gpu_functions()) {
    if (!for_virtual_machines(gpu.driver) || !gpu.iommu_group ||
        held_by_a_process(f, *gpu.iommu_group)) {
      continue;
    }
    const auto path = pci_path(gpu.address);
    steps.emplace_back(WriteValue{path + "/driver/unbind", gpu.address.sysfs()});
    steps.emplace_back(WriteValue{path + "/driver_override", "\n"});
    steps.emplace_back(WriteValue{"/sys/bus/pci/drivers_probe", gpu.address.sysfs()});
  }
  return steps;
}

constexpr Check kBindingChecks[] = {
    {.id = "pci.nouveau",
     .reference = "H5",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "nouveau does not hold a GPU",
     .reads = "/sys/bus/pci/devices/*/driver, /sys/module/nouveau",
     .cause = "The open nouveau driver was loaded at boot, usually from the initramfs; the NVIDIA "
              "module then cannot take the GPU.",
     .remedy = preflight::kForbidNouveau,
     .judge = judge_nouveau,
     .fix = fix_nouveau,
     .afterwards = "if a GPU is still held: reboot"},
    {.id = "pci.foreign-driver",
     .reference = "H6",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "no other driver holds a GPU",
     .reads = "/sys/bus/pci/devices/*/driver",
     .cause =
         "A newer in-kernel driver (nova_core) or a framebuffer driver (simpledrm, efifb) took "
         "the GPU first.",
     .remedy = "echo \"blacklist DRIVER\" | sudo tee /etc/modprobe.d/nvidia-owner.conf && (sudo "
               "update-initramfs -u || sudo dracut -f) && sudo reboot",
     .judge = judge_foreign,
     .fix = fix_foreign,
     .afterwards = "reboot"},
    {.id = "pci.unbound",
     .reference = "H14",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "every GPU has a driver",
     .reads = "/sys/bus/pci/devices/*/driver",
     .cause = "The loaded driver does not know this card (branch too old or too new) or failed to "
              "start it, or the GPU was unbound by hand.",
     .remedy = "echo BDF | sudo tee /sys/bus/pci/drivers_probe; sudo dmesg | grep NVRM",
     .judge = judge_unbound,
     .fix = fix_unbound},
    {.id = "pci.override",
     .reference = "H20",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "no left-over driver override",
     .reads = "/sys/bus/pci/devices/*/driver_override",
     .cause = "The GPU was reserved for another driver (passthrough), and this was not undone: "
              "lspci shows the GPU, nvidia-smi does not.",
     .remedy = "echo | sudo tee /sys/bus/pci/devices/BDF/driver_override; echo BDF | sudo tee "
               "/sys/bus/pci/drivers_probe",
     .judge = judge_override,
     .fix = fix_override},
    {.id = "pci.passthrough",
     .reference = "H20",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "no GPU is reserved for virtual machines",
     .reads = "/sys/bus/pci/devices/*/driver",
     .cause =
         "These GPUs are bound to a vfio driver, so that a VM can use them. Containers of this "
         "machine cannot use them.",
     .remedy = "to give one back: echo BDF | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind; echo | "
               "sudo tee /sys/bus/pci/devices/BDF/driver_override; echo BDF | sudo tee "
               "/sys/bus/pci/drivers_probe",
     .judge = judge_passthrough,
     .fix = fix_passthrough,
     .by_hand = "a virtual machine uses the GPU: unbinding it would wait for that machine"},
};

}  // namespace

std::span<const Check> binding_checks() {
  return kBindingChecks;
}

}  // namespace gantry::doctor
