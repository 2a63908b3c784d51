// SPDX-License-Identifier: Apache-2.0
// Which kernel driver holds each GPU.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>

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
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    read.push_back(driver_of(gpu));
    if (gpu.driver == "nouveau") {
      return fail(fmt::format("nouveau holds {}", gpu.address.sysfs()), read);
    }
  }
  if (f.module_loaded("nouveau")) {
    read.push_back({"/sys/module/nouveau", "loaded"});
    return warn("nouveau is loaded beside the NVIDIA driver", read);
  }
  if (read.empty()) return skip("no GPU on the bus");
  return ok("nouveau is not loaded", read);
}

std::vector<Action> fix_nouveau(const Facts&) {
  return {RunProgram{{"modprobe", "-r", "nouveau"}}, LoadModule{"nvidia"}};
}

Finding judge_foreign(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    read.push_back(driver_of(gpu));
    const bool expected = gpu.driver.empty() || gpu.driver == "nvidia" || gpu.driver == "nouveau" ||
                          for_virtual_machines(gpu.driver);
    if (!expected) {
      return fail(fmt::format("{} is held by {}", gpu.address.sysfs(), gpu.driver), read);
    }
  }
  if (read.empty()) return skip("no GPU on the bus");
  return ok("no foreign driver holds a GPU", read);
}

Finding judge_unbound(const Facts& f) {
  if (!f.driver_loaded()) return skip("the nvidia module is not loaded: see module.loaded");
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    read.push_back(driver_of(gpu));
    if (!gpu.driver.empty()) continue;
    return fail(fmt::format("no driver took {}", gpu.address.sysfs()), read)
        .advise(fmt::format("echo {0} | sudo tee /sys/bus/pci/drivers_probe; sudo dmesg | grep -i "
                            "-e NVRM -e {0}",
                            gpu.address.sysfs()));
  }
  if (read.empty()) return skip("no GPU on the bus");
  return ok("every GPU has a driver", read);
}

std::vector<Action> fix_unbound(const Facts& f) {
  std::vector<Action> actions;
  for (const auto& gpu : f.gpu_functions()) {
    if (gpu.driver.empty()) {
      actions.emplace_back(WriteValue{"/sys/bus/pci/drivers_probe", gpu.address.sysfs()});
    }
  }
  return actions;
}

// An override to vfio on a GPU that vfio holds is passthrough, wanted; see pci.passthrough.
bool leftover_override(const model::PciFunction& gpu) {
  if (gpu.driver_override.empty() || gpu.driver_override == "nvidia") return false;
  return gpu.driver != gpu.driver_override;
}

Finding judge_override(const Facts& f) {
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    const auto path = pci_path(gpu.address) + "/driver_override";
    read.push_back({path, gpu.driver_override.empty() ? "(null)" : gpu.driver_override});
    if (!leftover_override(gpu)) continue;
    read.push_back(driver_of(gpu));
    return warn(fmt::format("{} is reserved for {} but not held by it", gpu.address.sysfs(),
                            gpu.driver_override),
                read)
        .advise(fmt::format("echo | sudo tee {}; echo {} | sudo tee /sys/bus/pci/drivers_probe",
                            path, gpu.address.sysfs()));
  }
  if (read.empty()) return skip("no GPU on the bus");
  return ok("no left-over driver override", read);
}

std::vector<Action> fix_override(const Facts& f) {
  std::vector<Action> actions;
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
  std::vector<Evidence> held;
  std::vector<Evidence> read;
  for (const auto& gpu : f.gpu_functions()) {
    read.push_back(driver_of(gpu));
    if (for_virtual_machines(gpu.driver)) held.push_back(driver_of(gpu));
  }
  if (read.empty()) return skip("no GPU on the bus");
  if (held.empty()) return ok("no GPU is reserved for virtual machines", read);
  return info(
      fmt::format("{} of {} GPU(s) are reserved for virtual machines", held.size(), read.size()),
      held);
}

constexpr Check kChecks[] = {
    {.id = "pci.nouveau",
     .reference = "H5",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "nouveau does not hold a GPU",
     .reads = "/sys/bus/pci/devices/*/driver, /sys/module/nouveau",
     .cause = "The open nouveau driver was loaded at boot, mostly from the initramfs; the NVIDIA "
              "module then finds the GPU taken.",
     .remedy = "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "
               "/etc/modprobe.d/nvidia-no-nouveau.conf && (sudo update-initramfs -u || sudo dracut "
               "-f) && sudo reboot",
     .judge = judge_nouveau,
     .fix = fix_nouveau},
    {.id = "pci.foreign-driver",
     .reference = "H6",
     .area = Area::Hardware,
     .title = "no foreign driver holds a GPU",
     .reads = "/sys/bus/pci/devices/*/driver",
     .cause =
         "A newer in-kernel driver (nova_core) or a framebuffer driver (simpledrm, efifb) took "
         "the GPU first.",
     .remedy = "echo \"blacklist DRIVER\" | sudo tee /etc/modprobe.d/nvidia-owner.conf && (sudo "
               "update-initramfs -u || sudo dracut -f) && sudo reboot",
     .judge = judge_foreign},
    {.id = "pci.unbound",
     .reference = "H14",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "every GPU has a driver",
     .reads = "/sys/bus/pci/devices/*/driver",
     .cause = "The loaded driver does not know this card (branch too old or too new), refused to "
              "start it, or it was unbound by hand.",
     .remedy = "echo BDF | sudo tee /sys/bus/pci/drivers_probe; sudo dmesg | grep NVRM",
     .judge = judge_unbound,
     .fix = fix_unbound},
    {.id = "pci.override",
     .reference = "H20",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "no left-over driver override",
     .reads = "/sys/bus/pci/devices/*/driver_override",
     .cause = "Somebody reserved the GPU for another driver (passthrough) and did not undo it: "
              "lspci shows the GPU, nvidia-smi does not.",
     .remedy = "echo | sudo tee /sys/bus/pci/devices/BDF/driver_override; echo BDF | sudo tee "
               "/sys/bus/pci/drivers_probe",
     .judge = judge_override,
     .fix = fix_override},
    {.id = "pci.passthrough",
     .reference = "H20",
     .area = Area::Hardware,
     .title = "no GPU is reserved for virtual machines",
     .reads = "/sys/bus/pci/devices/*/driver",
     .cause =
         "These GPUs are bound to a vfio driver, so that a VM can have them. Containers of this "
         "machine cannot.",
     .remedy = "to give one back: echo BDF | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind; echo | "
               "sudo tee /sys/bus/pci/devices/BDF/driver_override; echo BDF | sudo tee "
               "/sys/bus/pci/drivers_probe",
     .judge = judge_passthrough},
};

}  // namespace

std::span<const Check> binding_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
