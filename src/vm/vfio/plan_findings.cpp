// SPDX-License-Identifier: Apache-2.0
// The reasons why a GPU cannot be passed through, each with a sentence and a remedy.
#include "vm/vfio/plan_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::vfio {
namespace {

using model::PciAddress;

std::string end_command(const Holder& holder) {
  const auto slash = holder.pod.find('/');
  if (slash == std::string::npos) return fmt::format("sudo kill {}", holder.pid);
  return fmt::format("kubectl delete pod -n {} {}", holder.pod.substr(0, slash),
                     holder.pod.substr(slash + 1));
}

class Findings {
 public:
  Findings(const MachineState& state, Plan& plan) : state_(state), plan_(plan) {}

  void check_all() {
    for (const auto& target : plan_.targets) check_target(target);
    check_iommu();
    check_groups();
    check_module();
    check_unfinished();
    check_holders();
    check_control_holders();
    std::stable_sort(plan_.findings.begin(), plan_.findings.end(),
                     [](const auto& a, const auto& b) { return a.severity < b.severity; });
  }

 private:
  void add(Severity severity, FindingCode code, const PciAddress& address, std::string text,
           std::string remedy = "") {
    plan_.findings.push_back({.severity = severity,
                              .code = code,
                              .address = address,
                              .text = std::move(text),
                              .remedy = std::move(remedy)});
  }
  void block(FindingCode code, const PciAddress& address, std::string text,
             std::string remedy = "") {
    add(Severity::Blocker, code, address, std::move(text), std::move(remedy));
  }
  void warn(FindingCode code, const PciAddress& address, std::string text,
            std::string remedy = "") {
    add(Severity::Warning, code, address, std::move(text), std::move(remedy));
  }

  void check_target(const PciAddress& target);
  void check_use(const pci::Function& gpu);
  void check_mig(const pci::Function& gpu);
  void check_reset(const pci::Function& gpu);
  void check_domain(const pci::Function& gpu);
  void check_iommu();
  void check_missing_iommu();
  void check_interrupts();
  void check_groups();
  void check_module();
  void check_unfinished();
  void check_holders();
  void check_control_holders();
  PciAddress held_target(const std::string& node) const;
  std::string culprit_remedy(const pci::Function& culprit) const;

  const MachineState& state_;
  Plan& plan_;
};

void Findings::check_target(const PciAddress& target) {
  const auto name = target.sysfs();
  const auto* gpu = state_.bus.find(target);
  if (gpu == nullptr) {
    block(FindingCode::Gone, target, fmt::format("{} is not on the PCI bus", name),
          "lspci -D -d 10de:");
    return;
  }
  if (!gpu->is_gpu() && !gpu->is_nvswitch()) {
    block(FindingCode::NotNvidia, target,
          fmt::format("{} is not an NVIDIA GPU or NVSwitch but {} {}", name,
                      pci::to_string(gpu->kind()), pci::to_string(gpu->id)));
    return;
  }
  if (!gpu->answers) {
    block(FindingCode::DeadConfig, target,
          fmt::format("{} has fallen off the bus: its configuration space reads all ones", name),
          "sudo reboot  # if it comes back: check its power cables, riser and temperature");
  }
  if (gpu->vendor_vfio) {
    block(FindingCode::VendorVfio, target,
          fmt::format("{} is a virtual function whose vGPU the nvidia driver gives to VFIO itself, "
                      "so it must stay with the driver nvidia",
                      name),
          fmt::format("gantry vgpu list  # give its /dev/vfio node to the virtual machine"));
  }
  if (!gpu->has_driver_override) {
    block(FindingCode::NoDriverOverride, target,
          fmt::format("the kernel has no driver_override for {}; Linux 3.16 and later have it, and "
                      "the older way, new_id, would also take every equal card",
                      name));
  }
  check_use(*gpu);
  check_reset(*gpu);
  check_domain(*gpu);
}

void Findings::check_use(const pci::Function& gpu) {
  const auto name = gpu.address.sysfs();
  if (gpu.boot_vga) {
    block(FindingCode::Display, gpu.address,
          fmt::format("{} drives the console: the firmware made it the primary display", name),
          "choose another display in the firmware (onboard or BMC), then reboot");
  }
  check_mig(gpu);
  if (gpu.mdevs > 0) {
    block(FindingCode::HasVgpus, gpu.address,
          fmt::format("{} has {} vGPU{}, which would vanish with its driver", name, gpu.mdevs,
                      gpu.mdevs == 1 ? "" : "s"),
          fmt::format("gantry vgpu remove --all --gpu {}", name));
  }
  if (gpu.sriov && gpu.sriov->num_vfs > 0) {
    block(FindingCode::VfsEnabled, gpu.address,
          fmt::format("{} has {} virtual function{} enabled, which vGPUs use", name,
                      gpu.sriov->num_vfs, gpu.sriov->num_vfs == 1 ? "" : "s"),
          fmt::format("gantry vgpu list; when no vGPU is left: echo 0 | sudo tee "
                      "/sys/bus/pci/devices/{}/sriov_numvfs",
                      name));
  }
}

// Without instances nothing on the host is lost. But some GPUs keep the mode, also in the guest.
void Findings::check_mig(const pci::Function& gpu) {
  const auto* known = state_.driver_gpu(gpu.address);
  if (known == nullptr) return;
  const auto name = gpu.address.sysfs();
  if (known->has_mig_instances) {
    block(FindingCode::MigInstances, gpu.address,
          fmt::format("{} is in MIG mode and has instances", name),
          fmt::format("sudo nvidia-smi mig -i {0} -dci; sudo nvidia-smi mig -i {0} -dgi; sudo "
                      "nvidia-smi -i {0} -mig 0",
                      name));
  } else if (known->in_mig_mode) {
    warn(FindingCode::MigMode, gpu.address,
         fmt::format("{} is in MIG mode without instances: if it keeps the mode in the virtual "
                     "machine, no CUDA program finds it there until instances are created",
                     name),
         fmt::format("sudo nvidia-smi -i {} -mig 0  # here, or in the virtual machine", name));
  }
}

void Findings::check_reset(const pci::Function& gpu) {
  const auto name = gpu.address.sysfs();
  if (!gpu.can_reset) {
    warn(FindingCode::NoReset, gpu.address,
         fmt::format("the kernel cannot reset {}: the next machine may find the memory of the last "
                     "one, or may not start",
                     name));
    return;
  }
  const bool only_bus = gpu.reset_methods == std::vector<std::string>{"bus"};
  const bool alone = std::none_of(
      state_.bus.functions.begin(), state_.bus.functions.end(), [&](const auto& other) {
        return other.address.domain == gpu.address.domain && other.address.bus == gpu.address.bus &&
               !pci::same_slot(other.address, gpu.address);
      });
  if (only_bus && !alone) {
    warn(FindingCode::BusReset, gpu.address,
         fmt::format("{} can be reset only together with all other devices of its bus", name));
  }
}

// tests/golden/vm/kata-kubevirt.txt has what these programs answered.
void Findings::check_domain(const pci::Function& gpu) {
  if (gpu.address.domain <= 0xffff) return;
  auto mistaken = gpu.address;
  mistaken.domain &= 0xffffU;
  warn(FindingCode::WideDomain, gpu.address,
       fmt::format("{} is in a PCI domain above ffff: KubeVirt refuses such an address, and Kata "
                   "takes the node below /dev/vfio/devices for {}",
                   gpu.address.sysfs(), mistaken.sysfs()),
       gpu.iommu_group ? fmt::format("with Kata, use /dev/vfio/{}", *gpu.iommu_group) : "");
}

void Findings::check_iommu() {
  if (!state_.iommu.active) {
    check_missing_iommu();
    return;
  }
  for (const auto& function : plan_.functions) {
    if (function.group) continue;
    block(FindingCode::NotBehindIommu, function.address,
          fmt::format("the IOMMU is on, but {} is not behind it: it has no IOMMU group",
                      function.address.sysfs()),
          "sudo dmesg | grep -i -e DMAR -e AMD-Vi  # says which devices the firmware leaves out");
  }
  check_interrupts();
}

// Three causes, three remedies: a person who changes the wrong one of them reboots in vain.
void Findings::check_missing_iommu() {
  const auto& iommu = state_.iommu;
  if (plan_.targets.empty()) return;
  const auto& first = plan_.targets.front();
  if (!iommu.firmware_table && iommu.guest) {
    block(
        FindingCode::GuestWithoutIommu, first,
        "this machine is itself a virtual machine without an IOMMU, so it cannot pass its GPUs on",
        "give it a virtual IOMMU on its host; QEMU: -device "
        "intel-iommu,intremap=on,caching-mode=on");
    return;
  }
  const std::string_view name = iommu.amd ? "AMD-Vi (IOMMU)" : "VT-d";
  if (!iommu.firmware_table) {
    block(FindingCode::NoFirmwareIommu, first,
          fmt::format("the firmware offers no IOMMU: {} is switched off in its setup, or this "
                      "machine does not have it",
                      name),
          fmt::format("enable {} in the firmware setup, then reboot", name));
    return;
  }
  if (!iommu.disabled_by.empty()) {
    block(FindingCode::NoKernelIommu, first,
          fmt::format("the firmware offers an IOMMU, but {} on the kernel's command line switches "
                      "it off",
                      iommu.disabled_by),
          fmt::format("remove {} from the kernel's command line, then reboot", iommu.disabled_by));
    return;
  }
  // There is no amd_iommu=on: the kernel uses AMD-Vi by itself, unless something is wrong with it.
  block(FindingCode::NoKernelIommu, first,
        "the firmware offers an IOMMU, but the kernel does not use it",
        iommu.amd ? "sudo dmesg | grep -e AMD-Vi -e IVRS  # says why; update the firmware if its "
                    "tables are wrong"
                  : "add intel_iommu=on to the kernel's command line, then reboot");
}

void Findings::check_interrupts() {
  if (state_.iommu.interrupts != InterruptRemapping::Off || plan_.targets.empty()) return;
  const auto& first = plan_.targets.front();
  if (state_.iommu.unsafe_interrupts) {
    warn(FindingCode::UnsafeInterrupts, first,
         "interrupts are not remapped and allow_unsafe_interrupts is set: a guest can raise "
         "interrupts of this host");
    return;
  }
  block(FindingCode::NoInterruptRemapping, first,
        "the IOMMU does not remap interrupts, so VFIO refuses every virtual machine with EPERM",
        "enable interrupt remapping (x2APIC) in the firmware; only if all guests are trusted: echo "
        "options vfio_iommu_type1 allow_unsafe_interrupts=1 | sudo tee "
        "/etc/modprobe.d/gantry-vfio.conf");
}

std::string Findings::culprit_remedy(const pci::Function& culprit) const {
  std::vector<std::string> all;
  for (const auto& target : plan_.targets) all.push_back(target.sysfs());
  if (culprit.is_nvswitch())
    return fmt::format("gantry vfio plan --with-nvswitches {}", fmt::join(all, " "));
  all.push_back(culprit.address.sysfs());
  if (culprit.is_gpu())
    return fmt::format("gantry vfio plan {}  # both must go together", fmt::join(all, " "));
  return "put the card into a slot that separates devices (ACS), or switch ACS on in the firmware";
}

void Findings::check_groups() {
  std::vector<PciAddress> bound;
  for (const auto& function : plan_.functions) bound.push_back(function.address);
  for (const int group : plan_.groups) {
    for (const auto* culprit : blocking_members(state_.bus, group, bound)) {
      block(FindingCode::GroupNotViable, culprit->address,
            fmt::format("IOMMU group {} also has {} ({}, driver {}), and VFIO takes a group only "
                        "when no driver of the host holds any of its devices",
                        group, culprit->address.sysfs(), pci::to_string(culprit->kind()),
                        culprit->driver),
            culprit_remedy(*culprit));
    }
  }
}

void Findings::check_module() {
  if (state_.has_vfio_module.value_or(true) || plan_.targets.empty()) return;
  block(FindingCode::NoVfioModule, plan_.targets.front(), "this kernel has no module vfio-pci",
        "install the package with all modules of this kernel (Ubuntu: linux-modules-extra-$(uname "
        "-r))");
}

void Findings::check_unfinished() {
  for (const auto& target : plan_.targets) {
    const auto* gpu = state_.driver_gpu(target);
    if (gpu == nullptr || !gpu->silent) continue;
    block(FindingCode::Stuck, target,
          fmt::format("the nvidia driver does not answer, so it is not known who uses {}: another "
                      "process opens a GPU, or the driver hangs",
                      target.sysfs()),
          "try again in a minute; if it stays so: sudo reboot");
  }
  for (const auto& function : plan_.functions) {
    const auto* found = state_.bus.find(function.address);
    if (found == nullptr || !found->locked) continue;
    block(
        FindingCode::Stuck, function.address,
        fmt::format("the kernel holds the lock of {}: a bind or unbind of it is under way and may "
                    "be stuck",
                    function.address.sysfs()),
        "end the processes that use it, then: gantry vfio recover; otherwise: sudo reboot");
  }
  for (const auto& work : state_.unfinished) {
    for (const auto& address : work.functions) {
      const bool ours =
          std::any_of(plan_.functions.begin(), plan_.functions.end(),
                      [&](const auto& function) { return function.address == address; });
      if (!ours) continue;
      if (!work.stuck.empty()) {
        block(FindingCode::Stuck, work.stuck.front(),
              fmt::format("a {} of {} is stuck in the kernel; Gantry leaves this GPU alone",
                          work.kind, work.stuck.front().sysfs()),
              "when the processes that used it have ended: gantry vfio recover; otherwise: sudo "
              "reboot");
      } else {
        block(
            FindingCode::Unfinished, address,
            fmt::format("a {} of {} has not ended: another Gantry is at work on it, or was killed",
                        work.kind, address.sysfs()),
            "gantry vfio recover");
      }
      break;
    }
  }
}

// The GPU that the node belongs to.
PciAddress Findings::held_target(const std::string& node) const {
  for (const auto& planned : plan_.functions) {
    const auto* function = state_.bus.find(planned.address);
    if (function == nullptr) continue;
    const auto nodes = device_nodes(state_, *function);
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return planned.target;
  }
  return plan_.targets.front();
}

void Findings::check_holders() {
  for (const auto& holder : plan_.holders) {
    add(Severity::InUse, FindingCode::InUse, held_target(holder.node), describe(holder),
        end_command(holder) + "  # or wait for it with --drain");
  }
}

// They do not keep the GPU, but they may open it before the unbind, which would then wait.
void Findings::check_control_holders() {
  const auto leaving =
      std::find_if(plan_.functions.begin(), plan_.functions.end(), [](const auto& function) {
        return function.address == function.target && function.driver == "nvidia";
      });
  if (leaving == plan_.functions.end()) return;
  std::vector<std::uint32_t> known;
  for (const auto& holder : state_.control_holders) {
    const bool ours =
        is_own_sensor(holder) || is_persistence_daemon(holder) || is_dcgm_service(holder);
    if (ours || std::find(known.begin(), known.end(), holder.pid) != known.end()) continue;
    known.push_back(holder.pid);
    warn(FindingCode::DriverOpen, leaving->address,
         fmt::format("{} and no GPU yet: it may open {} at any moment", describe(holder),
                     leaving->address.sysfs()),
         end_command(holder));
  }
}

}  // namespace

void add_findings(const MachineState& state, Plan& plan) {
  Findings(state, plan).check_all();
}

}  // namespace gantry::vfio
