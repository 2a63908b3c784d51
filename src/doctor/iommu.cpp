// SPDX-License-Identifier: Apache-2.0
// What passthrough to VMs needs, and what peer-to-peer copies on metal suffer from.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

bool on_vfio(const model::PciFunction& function) {
  return contains(function.driver, "vfio");
}

bool passthrough_wanted(const Facts& f) {
  const auto gpus = f.gpu_functions();
  const bool bound = std::any_of(gpus.begin(), gpus.end(), [](const model::PciFunction& gpu) {
    return on_vfio(gpu) || contains(gpu.driver_override, "vfio");
  });
  return bound || contains(f.value("/proc/cmdline").value_or(""), "vfio-pci.ids=");
}

bool iommu_on(const Facts& f) {
  const auto names = f.host().list("/sys/class/iommu");
  return names.ok() && !names->empty();
}

Finding judge_off(const Facts& f) {
  if (iommu_on(f)) return ok("the IOMMU is on", {{"/sys/class/iommu", "present"}});
  const bool wanted = passthrough_wanted(f);
  std::vector<Evidence> read{{"/sys/class/iommu", "(empty)"}, f.read("/proc/cmdline")};
  if (wanted) return fail("a GPU is meant for a VM, but the IOMMU is off", read);
  if (f.guest().is_virtual()) {
    return skip("this is a guest: it needs no IOMMU of its own to use its GPU", read);
  }
  if (!f.guest().known) return skip("nothing says whether this is a guest", read);
  return info("the IOMMU is off: GPUs work in containers, but cannot be given to VMs", read);
}

Finding judge_group(const Facts& f) {
  bool any = false;
  for (const auto& function : f.inventory().functions) {
    if (!on_vfio(function) || !function.iommu_group) continue;
    any = true;
    const auto directory =
        fmt::format("/sys/kernel/iommu_groups/{}/devices", *function.iommu_group);
    const auto members = f.host().list(directory);
    if (!members.ok()) continue;
    for (const auto& member : *members) {
      const auto link = f.host().link("/sys/bus/pci/devices/" + member + "/driver");
      const auto driver = link.ok() ? link->substr(link->rfind('/') + 1) : "";
      if (driver.empty() || contains(driver, "vfio") || driver == "pcieport" ||
          driver == "pci-stub") {
        continue;
      }
      return fail(fmt::format("group {} is not viable: {} in it is held by {}",
                              *function.iommu_group, member, driver),
                  {{directory, member}, {"/sys/bus/pci/devices/" + member + "/driver", driver}})
          .advise(
              fmt::format("echo vfio-pci | sudo tee /sys/bus/pci/devices/{0}/driver_override; "
                          "echo {0} | sudo tee /sys/bus/pci/devices/{0}/driver/unbind; echo {0} "
                          "| sudo tee /sys/bus/pci/drivers_probe",
                          member));
    }
  }
  if (!any) return skip("no NVIDIA function is bound to a vfio driver");
  return ok("every group with a GPU for VMs is viable");
}

Finding judge_translating(const Facts& f) {
  if (f.guest().is_virtual()) return skip("this is a guest: its host decides");
  if (f.inventory().gpus.size() < 2) return skip("one GPU: no copies between GPUs");
  std::vector<Evidence> read;
  for (const auto& function : f.gpu_functions()) {
    if (!function.iommu_group || on_vfio(function)) continue;
    const auto path = fmt::format("/sys/kernel/iommu_groups/{}/type", *function.iommu_group);
    const auto type = f.value(path);
    if (!type) continue;
    read.push_back({path, *type});
    if (type->starts_with("DMA")) {
      return info(fmt::format("the IOMMU translates for {}", function.address.sysfs()), read);
    }
  }
  if (read.empty()) return skip("the GPUs are in no IOMMU group");
  return ok("the IOMMU does not stand between the GPUs", read);
}

// Offset of the ACS control register in the extended configuration space; 0 when there is none.
std::size_t acs_control(std::string_view config) {
  const auto word = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(config[at])) |
           static_cast<unsigned>(static_cast<unsigned char>(config[at + 1])) << 8U;
  };
  std::size_t at = 0x100;
  for (int steps = 0; steps < 64 && at >= 0x100 && at + 8 <= config.size(); ++steps) {
    if (word(at) == 0x000D) return at + 6;
    at = (word(at + 2) >> 4U) & 0xFFCU;
  }
  return 0;
}

constexpr unsigned kRedirect = 0x0C;  // P2P request and completion redirect

Finding judge_acs(const Facts& f) {
  if (f.guest().is_virtual()) return skip("this is a guest: its host decides");
  if (f.inventory().gpus.size() < 2) return skip("one GPU: no copies between GPUs");
  if (passthrough_wanted(f)) return skip("GPUs are meant for VMs, which need the redirection");
  bool any = false;
  for (const auto& gpu : f.gpu_functions()) {
    const auto real = f.host().resolve(pci_path(gpu.address));
    if (!real.ok()) continue;
    // ".../0000:16:00.0/0000:17:00.0": the directory above is the bridge.
    const auto bridge = real->substr(0, real->rfind('/'));
    const auto config = f.host().read(bridge + "/config", 65536);
    if (!config.ok() || config->size() < 0x104) continue;
    any = true;
    const auto at = acs_control(*config);
    if (at == 0 || at >= config->size()) continue;
    const auto control = static_cast<unsigned>(static_cast<unsigned char>((*config)[at]));
    if ((control & kRedirect) == 0) continue;
    const auto name = bridge.substr(bridge.rfind('/') + 1);
    return warn(fmt::format("bridge {} sends copies between GPUs to the root complex", name),
                {{bridge + "/config", fmt::format("ACS control {:#x}", control)}})
        .advise(fmt::format("sudo setpci -s {} ECAP_ACS+6.w=0000  # lost at reboot", name));
  }
  if (!any) return skip("the bridges' configuration space cannot be read (root only)");
  return ok("no bridge redirects copies between GPUs");
}

constexpr Check kChecks[] = {
    {.id = "iommu.off",
     .reference = "H17",
     .area = Area::Hardware,
     .title = "the IOMMU is on where passthrough is wanted",
     .reads = "/sys/class/iommu, /proc/cmdline",
     .cause = "VT-d or AMD-Vi is disabled in the firmware, or the kernel was not told to use it.",
     .remedy = "enable VT-d / AMD-Vi in the firmware, add intel_iommu=on iommu=pt (AMD: iommu=pt) "
               "to the kernel's command line, sudo update-grub && sudo reboot",
     .judge = judge_off},
    {.id = "iommu.group",
     .reference = "H19",
     .area = Area::Hardware,
     .fix_class = FixClass::Never,
     .title = "IOMMU groups of GPUs for VMs are viable",
     .reads = "/sys/kernel/iommu_groups/*/devices",
     .cause =
         "Another function of the same group (audio, USB, a neighbour) is still held by a host "
         "driver: VFIO answers \"group is not viable\".",
     .remedy = "bind every function of the group to vfio-pci",
     .judge = judge_group},
    {.id = "iommu.translating",
     .reference = "H17",
     .area = Area::Hardware,
     .title = "the IOMMU does not slow copies between GPUs",
     .reads = "/sys/kernel/iommu_groups/*/type",
     .cause =
         "The GPUs' groups are in translated mode; peer-to-peer copies and GPUDirect go through "
         "the IOMMU.",
     .remedy = "add iommu=pt to the kernel's command line, sudo update-grub && sudo reboot",
     .judge = judge_translating},
    {.id = "iommu.acs",
     .reference = "H18",
     .area = Area::Hardware,
     .fix_class = FixClass::Never,
     .title = "bridges do not redirect copies between GPUs",
     .reads = "config of the bridge above each GPU (ACS control)",
     .cause =
         "ACS redirection sends every peer-to-peer packet up to the root complex: NCCL is slow "
         "or hangs.",
     .remedy = "disable ACS in the firmware, or sudo setpci -s BRIDGE ECAP_ACS+6.w=0000",
     .judge = judge_acs},
};

}  // namespace

std::span<const Check> iommu_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
