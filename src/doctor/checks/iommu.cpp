// SPDX-License-Identifier: Apache-2.0
// The IOMMU: passthrough to VMs needs it, peer-to-peer copies on bare metal suffer from it.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

std::string switch_on(const Facts& f) {
  const bool amd = contains(f.host().read("/proc/cpuinfo").value_or(""), "AuthenticAMD");
  return fmt::format("{}  # and enable {} in the firmware",
                     kernel_argument_command(f, amd ? "iommu=pt" : "intel_iommu=on iommu=pt"),
                     amd ? "AMD-Vi" : "VT-d");
}

Finding judge_off(const Facts& f) {
  if (iommu_on(f)) return ok("the IOMMU is on", {{"/sys/class/iommu", "present"}});
  const bool wanted = passthrough_wanted(f);
  std::vector<Evidence> read{{"/sys/class/iommu", "(empty)"}, f.read("/proc/cmdline")};
  if (wanted) {
    return fail("a GPU is meant for a VM, but the IOMMU is off", read).advise(switch_on(f));
  }
  if (f.guest().is_virtual()) {
    return skip("this is a guest: it does not need an IOMMU to use its GPU", read);
  }
  if (!f.guest().known) return skip("cannot tell whether this is a guest", read);
  return info("the IOMMU is off: GPUs work in containers, but cannot be given to VMs", read)
      .advise(switch_on(f));
}

struct GroupMember {
  int group = 0;
  std::string address;
  std::string driver;
  bool same_card = false;  // another function of a GPU that is meant for a VM
};

// Functions that prevent a group with a GPU for VMs from being passed through.
std::vector<GroupMember> blocking_group_members(const Facts& f) {
  std::vector<GroupMember> found;
  std::set<std::string> seen;
  for (const auto& function : f.inventory().functions) {
    if (!on_vfio(function) || !function.iommu_group) continue;
    const auto members =
        f.host().list(fmt::format("/sys/kernel/iommu_groups/{}/devices", *function.iommu_group));
    if (!members.ok()) continue;
    const auto slot = function.address.sysfs().substr(0, function.address.sysfs().rfind('.'));
    for (const auto& member : *members) {
      const auto link = f.host().link("/sys/bus/pci/devices/" + member + "/driver");
      const auto driver = link.ok() ? link->substr(link->rfind('/') + 1) : "";
      const bool viable = driver.empty() || contains(driver, "vfio") || driver == "pcieport" ||
                          driver == "pci-stub";
      if (viable || !seen.insert(member).second) continue;
      const bool same = member.substr(0, member.rfind('.')) == slot;
      found.push_back({static_cast<int>(*function.iommu_group), member, driver, same});
    }
  }
  return found;
}

Finding judge_iommu_group(const Facts& f) {
  const auto& functions = f.inventory().functions;
  const bool any = std::any_of(functions.begin(), functions.end(), [](const auto& function) {
    return on_vfio(function) && function.iommu_group;
  });
  if (!any) return skip("no NVIDIA function is bound to a vfio driver");
  Tally tally;
  for (const auto& neighbour : blocking_group_members(f)) {
    tally.found(
        fmt::format("{} ({}) in group {}", neighbour.address, neighbour.driver, neighbour.group),
        {"/sys/bus/pci/devices/" + neighbour.address + "/driver", neighbour.driver},
        neighbour.address);
  }
  if (!tally.any_bad()) return ok("every group with a GPU for VMs is viable");
  return fail(fmt::format("not viable because of {}", tally.who()), tally.bad)
      .advise(
          tally.command("echo vfio-pci | sudo tee /sys/bus/pci/devices/@/driver_override; echo @ "
                        "| sudo tee /sys/bus/pci/devices/@/driver/unbind; echo @ | sudo tee "
                        "/sys/bus/pci/drivers_probe"));
}

// Binds only the card's own sound and USB functions; another card may be the network or the disk.
Steps fix_iommu_group(const Facts& f) {
  Steps steps;
  for (const auto& neighbour : blocking_group_members(f)) {
    if (!neighbour.same_card) return {};
    const auto path = "/sys/bus/pci/devices/" + neighbour.address;
    steps.emplace_back(WriteValue{path + "/driver_override", "vfio-pci"});
    steps.emplace_back(WriteValue{path + "/driver/unbind", neighbour.address});
    steps.emplace_back(WriteValue{"/sys/bus/pci/drivers_probe", neighbour.address});
  }
  return steps;
}

Finding judge_translating(const Facts& f) {
  if (f.guest().is_virtual()) return skip("this is a guest: its host decides");
  if (f.inventory().gpus.size() < 2) return skip("one GPU: no copies between GPUs");
  Tally tally;
  for (const auto& function : f.gpu_functions()) {
    if (!function.iommu_group || on_vfio(function)) continue;
    const auto path = fmt::format("/sys/kernel/iommu_groups/{}/type", *function.iommu_group);
    const auto type = f.value(path);
    if (!type) continue;
    if (type->starts_with("DMA")) {
      tally.found(function.address.sysfs(), {path, *type});
    } else {
      tally.good({path, *type});
    }
  }
  if (tally.empty()) return skip("the GPUs are not in an IOMMU group");
  if (!tally.any_bad()) return ok("the IOMMU does not translate copies between GPUs", tally.well);
  return info(fmt::format("the IOMMU translates for {}", tally.who()), tally.bad)
      .advise(kernel_argument_command(f, "iommu=pt"));
}

// Offset of the ACS control register in the extended configuration space; 0 if there is none.
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

struct Bridge {
  std::string path;  // in /sys/devices
  std::string name;
  unsigned control = 0;
};

// The bridges above the GPUs whose ACS control can be read; only root can read that part.
std::vector<Bridge> bridges(const Facts& f) {
  std::vector<Bridge> found;
  std::set<std::string> seen;
  for (const auto& gpu : f.gpu_functions()) {
    const auto real = f.host().resolve(pci_path(gpu.address));
    if (!real.ok()) continue;
    // ".../0000:16:00.0/0000:17:00.0": the directory above is the bridge.
    const auto bridge = real->substr(0, real->rfind('/'));
    const auto config = f.host().read(bridge + "/config", 65536);
    if (!config.ok() || config->size() < 0x104 || !seen.insert(bridge).second) continue;
    const auto at = acs_control(*config);
    const auto control = at == 0 || at >= config->size()
                             ? 0U
                             : static_cast<unsigned>(static_cast<unsigned char>((*config)[at]));
    found.push_back({bridge, bridge.substr(bridge.rfind('/') + 1), control});
  }
  return found;
}

Finding judge_acs(const Facts& f) {
  if (f.guest().is_virtual()) return skip("this is a guest: its host decides");
  if (f.inventory().gpus.size() < 2) return skip("one GPU: no copies between GPUs");
  if (passthrough_wanted(f)) return skip("GPUs are meant for VMs, which need the redirection");
  const auto all = bridges(f);
  if (all.empty()) {
    return f.caller().uid == 0 ? skip("no bridge above a GPU shows its configuration space")
                               : skip_needs_root("the bridges' configuration space");
  }
  Tally tally;
  for (const auto& bridge : all) {
    Evidence read{bridge.path + "/config", fmt::format("ACS control {:#x}", bridge.control)};
    if ((bridge.control & kRedirect) != 0) {
      tally.found(bridge.name, std::move(read));
    } else {
      tally.good(std::move(read));
    }
  }
  if (!tally.any_bad()) return ok("no bridge redirects copies between GPUs", tally.well);
  return warn(fmt::format("copies between GPUs go through the root complex: {}", tally.who()),
              tally.bad)
      .advise(tally.command("sudo setpci -s @ ECAP_ACS+6.w=0000:000c") + "  # lost at reboot");
}

Steps fix_acs(const Facts& f) {
  Steps steps;
  if (!f.installed("setpci")) return steps;
  for (const auto& bridge : bridges(f)) {
    if ((bridge.control & kRedirect) == 0) continue;
    steps.emplace_back(RunProgram{{"setpci", "-s", bridge.name, "ECAP_ACS+6.w=0000:000c"}});
  }
  return steps;
}

constexpr Check kIommuChecks[] = {
    {.id = "iommu.off",
     .reference = "H17",
     .area = Area::Hardware,
     .title = "the IOMMU is on if GPUs are meant for VMs",
     .reads = "/sys/class/iommu, /proc/cmdline",
     .cause =
         "VT-d or AMD-Vi is disabled in the firmware, or the kernel is not configured to use it.",
     .remedy = "enable VT-d / AMD-Vi in the firmware, add intel_iommu=on iommu=pt (AMD: iommu=pt) "
               "to the kernel's command line, sudo update-grub && sudo reboot",
     .judge = judge_off},
    {.id = "iommu.group",
     .reference = "H19",
     .area = Area::Hardware,
     .fix_class = FixClass::OnRequest,
     .title = "IOMMU groups of GPUs for VMs are viable",
     .reads = "/sys/kernel/iommu_groups/*/devices",
     .cause =
         "A host driver still holds another function of the same group (audio, USB, another card): "
         "VFIO answers \"group is not viable\".",
     .remedy = "bind every function of the group to vfio-pci",
     .judge = judge_iommu_group,
     .fix = fix_iommu_group,
     .by_hand = "the group contains a device of another card, which this machine may need"},
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
     .fix_class = FixClass::OnRequest,
     .title = "bridges do not redirect copies between GPUs",
     .reads = "config of the bridge above each GPU (ACS control)",
     .cause =
         "ACS redirection sends every peer-to-peer packet up to the root complex: NCCL is slow "
         "or hangs.",
     .remedy = "disable ACS in the firmware, or sudo setpci -s BRIDGE ECAP_ACS+6.w=0000:000c",
     .judge = judge_acs,
     .fix = fix_acs,
     .by_hand = "setpci (package pciutils) is not installed",
     .afterwards = "lost at reboot; to make it permanent: disable ACS in the firmware"},
};

}  // namespace

std::span<const Check> iommu_checks() {
  return kIommuChecks;
}

}  // namespace gantry::doctor
