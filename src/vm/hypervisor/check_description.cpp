// SPDX-License-Identifier: Apache-2.0
// The rules for QEMU and libvirt.
#include "base/core/text.hpp"
#include "vm/hypervisor/checks_internal.hpp"
#include "vm/hypervisor/mmio.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::hypervisor {
namespace {

// Each device of the file, with the matching GPU of this machine.
struct AttachedGpu {
  const AttachedDevice* device;
  const GuestGpu* gpu;  // nullptr for a mediated device that this machine does not have
};

class DescriptionCheck {
 public:
  DescriptionCheck(const VmDescription& vm, std::span<const GuestGpu> machine)
      : vm_(vm), machine_(machine) {}

  CheckedFile run() {
    match_devices();
    if (gpus_.empty() && checked_.unknown == 0) {
      add({.id = "no-gpu",
           .severity = Severity::Problem,
           .what = "the file passes no GPU to the virtual machine",
           .why = "it has no vfio-pci device and no hostdev",
           .add = "gantry vm config --for qemu 0"});
      return std::move(checked_);
    }
    check_mixed();
    check_machine();
    check_window();
    check_numa();
    check_memory();
    for (const auto& attached : gpus_) check_gpu(attached);
    return std::move(checked_);
  }

 private:
  void add(Finding finding) { checked_.findings.push_back(std::move(finding)); }
  // The first text for libvirt, the second for QEMU.
  std::string either(std::string domain, std::string command) const {
    return vm_.libvirt ? std::move(domain) : std::move(command);
  }

  const GuestGpu* gpu_of(const AttachedDevice& device) const {
    for (const auto& gpu : machine_) {
      const bool mdev = gpu.attachment == Attachment::Mdev;
      if (device.host ? !mdev && gpu.address == *device.host
                      : mdev && gpu.mdev_uuid == device.mdev_uuid)
        return &gpu;
    }
    return nullptr;
  }

  bool is_companion(const AttachedDevice& device) const {
    return device.host && std::any_of(machine_.begin(), machine_.end(), [&](const GuestGpu& gpu) {
             return std::find(gpu.companions.begin(), gpu.companions.end(), *device.host) !=
                    gpu.companions.end();
           });
  }

  void match_devices() {
    for (const auto& device : vm_.devices) {
      const auto* gpu = gpu_of(device);
      if (gpu == nullptr && device.host) {
        if (!is_companion(device)) ++checked_.unknown;
        continue;
      }
      const bool vgpu = gpu == nullptr || gpu->is_vgpu();
      ++(vgpu ? checked_.vgpus : checked_.gpus);
      gpus_.push_back({&device, gpu});
      if (gpu != nullptr) cards_.push_back(*gpu);
    }
    if (checked_.unknown == 0) return;
    add({.id = "unknown-device",
         .severity = Severity::Advice,
         .what =
             fmt::format("the file passes {} PCI function{} that {} not an NVIDIA device on this "
                         "machine",
                         checked_.unknown, checked_.unknown == 1 ? "" : "s",
                         checked_.unknown == 1 ? "is" : "are"),
         .why = "without the card's BARs Gantry cannot compute the MMIO window; other devices need "
                "none",
         .add = "run `gantry vm check` on the host of the virtual machine, or with --root"});
  }

  void check_mixed() {
    if (checked_.gpus == 0 || checked_.vgpus == 0) return;
    const auto vgpu = std::find_if(gpus_.begin(), gpus_.end(), [](const AttachedGpu& attached) {
      return attached.gpu == nullptr || attached.gpu->is_vgpu();
    });
    add(mixed_finding(vgpu->device->line));
  }

  void check_machine() {
    if (vm_.q35) return;
    add({.id = "machine",
         .severity = Severity::Problem,
         .what = "the machine type is not q35",
         .why = "only q35 has PCIe ports; on the old machine type the driver does not see the "
                "card's PCIe capabilities",
         .add = either("<type arch='x86_64' machine='q35'>hvm</type>", "-machine q35,accel=kvm")});
  }

  void check_window() {
    const auto needed = mmio_window(cards_);
    if (needed <= kDefaultWindow) return;
    if (!vm_.efi) {
      add({.id = "firmware",
           .severity = Severity::Problem,
           .what = "the firmware is not EFI",
           .why = fmt::format("the GPUs need {} of addresses above 4 GiB, which the BIOS does not "
                              "assign reliably",
                              human_bytes(needed)),
           .add = either("<os firmware='efi'>",
                         "-drive if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/"
                         "OVMF_CODE_4M.fd")});
    }
    if (!vm_.host_phys_bits) {
      add({.id = "address-bits",
           .severity = Severity::Problem,
           .what = "the guest's processor does not have the host's physical address bits",
           .why = "with the default of 40 bits the window for the BARs does not fit beside the "
                  "memory",
           .add = either("<cpu mode='host-passthrough'><maxphysaddr mode='passthrough'/></cpu>",
                         "-cpu host,host-phys-bits=on")});
    }
    if (vm_.window_bytes.value_or(kDefaultWindow) >= needed) return;
    window_finding(needed);
  }

  void window_finding(std::uint64_t needed) {
    const auto option = fmt::format("name=opt/ovmf/X-PciMmio64Mb,string={}", needed / kMiB);
    // From edk2 202211 on OVMF takes an eighth of the address space if nothing is set.
    const bool may_be_dynamic = !vm_.window_bytes && vm_.host_phys_bits;
    add({.id = "mmio-window",
         .severity = may_be_dynamic ? Severity::Advice : Severity::Problem,
         .what =
             fmt::format("the MMIO window is {}; these GPUs need {}",
                         vm_.window_bytes ? human_bytes(*vm_.window_bytes) : std::string("not set"),
                         human_bytes(needed)),
         .why = "OVMF before edk2 202211 has 32 GiB for BARs; the guest's driver then says \"This "
                "PCI I/O region assigned to your NVIDIA device is invalid\"",
         .add = either(fmt::format("<qemu:commandline><qemu:arg value='-fw_cfg'/><qemu:arg "
                                   "value='{}'/></qemu:commandline>",
                                   option),
                       "-fw_cfg " + option)});
  }

  void check_numa() {
    const auto lost = std::find_if(gpus_.begin(), gpus_.end(), [](const AttachedGpu& attached) {
      return !attached.device->guest_node;
    });
    if (lost == gpus_.end()) return;
    const auto node = lost->gpu == nullptr ? 0 : lost->gpu->numa_node.value_or(0);
    add({.id = "numa",
         .severity = Severity::Advice,
         .what = "a GPU is on a bus without a NUMA node",
         .why = std::string(kNumaWhy),
         .add = either("<controller type='pci' index='1' model='pcie-expander-bus'><target "
                       "busNr='32'><node>0</node></target></controller>, a pcie-root-port on it, "
                       "and the GPU on that port",
                       "-device pxb-pcie,id=gpubus0,bus=pcie.0,bus_nr=32,numa_node=0 -device "
                       "pcie-root-port,id=gpuport0,bus=gpubus0,chassis=1, and bus=gpuport0 for the "
                       "GPU") +
                fmt::format("  # the card is on node {} of the host", node),
         .line = lost->device->line});
  }

  void check_memory() {
    if (!vm_.memory_bytes) return;
    const auto needed = locked_memory(*vm_.memory_bytes);
    if (vm_.lock_limit_bytes && *vm_.lock_limit_bytes < needed) {
      add({.id = "locked-memory",
           .severity = Severity::Problem,
           .what = fmt::format("the limit of locked memory is {}; the guest has {}",
                               human_bytes(*vm_.lock_limit_bytes), human_bytes(*vm_.memory_bytes)),
           .why = "VFIO pins all memory of the guest; QEMU says \"VFIO_MAP_DMA failed: Cannot "
                  "allocate memory\"",
           .add = either(fmt::format("<memtune><hard_limit unit='KiB'>{}</hard_limit></memtune>",
                                     needed / 1024),
                         fmt::format("ulimit -l {}", needed / 1024))});
    }
    if (vm_.locked && !vm_.lock_limit_bytes) {
      add({.id = "locked-memory",
           .severity = Severity::Advice,
           .what = "<locked/> is set without <hard_limit>",
           .why = "libvirt then removes the limit of locked memory altogether, and a fault of QEMU "
                  "can take the host's memory",
           .add = fmt::format("<memtune><hard_limit unit='KiB'>{}</hard_limit></memtune>",
                              (*vm_.memory_bytes + 4 * kGiB) / 1024)});
    }
  }

  void check_gpu(const AttachedGpu& attached) {
    const auto& device = *attached.device;
    if (!device.root_port) {
      add({.id = "root-port",
           .severity = Severity::Advice,
           .what = fmt::format("{} is not behind a PCIe port", device_label(attached)),
           .why = "the guest sees an endpoint of the root complex, without link speed and reset",
           .add = either("<controller type='pci' model='pcie-root-port'/>",
                         "-device pcie-root-port,id=gpuport0,bus=pcie.0,chassis=1, and "
                         "bus=gpuport0 for the GPU"),
           .line = device.line});
    }
    const bool vgpu = attached.gpu == nullptr || attached.gpu->is_vgpu();
    if (vgpu) check_vgpu(attached);
    if (!vgpu) check_whole(attached);
  }

  void check_vgpu(const AttachedGpu& attached) {
    const auto& device = *attached.device;
    if (!vm_.has_uuid) {
      add({.id = "uuid",
           .severity = Severity::Problem,
           .what = "the virtual machine has a vGPU but no UUID",
           .why = "NVIDIA's vGPU manager finds the virtual machine by its UUID",
           .add = "-uuid $(uuidgen)"});
    }
    if (attached.gpu == nullptr) {
      add({.id = "no-such-vgpu",
           .severity = Severity::Problem,
           .what = fmt::format("there is no mediated device {} on this machine", device.mdev_uuid),
           .why = "mediated devices are lost at a restart of the host",
           .add = "gantry vgpu list",
           .line = device.line});
      return;
    }
    if (attached.gpu->attachment == Attachment::VendorVfio && attached.gpu->vgpu_type == "0") {
      add({.id = "no-such-vgpu",
           .severity = Severity::Problem,
           .what = fmt::format("the virtual function {} has no vGPU", device_label(attached)),
           .why = "its type is 0: vGPUs are lost at a restart of the host, or none was created",
           .add = "gantry vgpu list",
           .line = device.line});
    }
    if (device.managed.value_or(false)) {
      add({.id = "managed",
           .severity = Severity::Problem,
           .what = fmt::format("{} is a vGPU, but managed='yes'", device_label(attached)),
           .why = "libvirt would bind the virtual function to vfio-pci, and the kernel refuses it "
                  "with EINVAL: it stays with NVIDIA's driver",
           .add = "<hostdev mode='subsystem' type='pci' managed='no'>",
           .line = device.line});
    }
  }

  void check_whole(const AttachedGpu& attached) {
    const auto& gpu = *attached.gpu;
    const bool bound = gpu.driver.find("vfio") != std::string::npos;
    if (!bound && !attached.device->managed.value_or(false)) {
      add({.id = "driver",
           .severity = Severity::Problem,
           .what = fmt::format("{} is bound to {}", gpu.address.sysfs(),
                               gpu.driver.empty() ? "no driver" : gpu.driver),
           .why = "QEMU can open it only while a vfio driver has it",
           .add = "gantry vfio bind " + gpu.address.sysfs(),
           .line = attached.device->line});
    }
    for (const auto& companion : gpu.companions) {
      const bool passed = std::any_of(vm_.devices.begin(), vm_.devices.end(),
                                      [&](const AttachedDevice& d) { return d.host == companion; });
      if (passed) continue;
      add({.id = "companion",
           .severity = Severity::Advice,
           .what = fmt::format("{} belongs to the same card and is not passed", companion.sysfs()),
           .why = "it shares the IOMMU group; as long as a driver of the host has it, VFIO says "
                  "\"group is not viable\"",
           .add = either(fmt::format("<hostdev mode='subsystem' type='pci' managed='yes'> for {}",
                                     companion.sysfs()),
                         fmt::format("-device vfio-pci,host={},bus=gpuport0,addr=0.{}",
                                     companion.sysfs(), companion.function)),
           .line = attached.device->line});
    }
  }

  static std::string device_label(const AttachedGpu& attached) {
    return attached.device->host ? attached.device->host->sysfs() : attached.device->mdev_uuid;
  }

  const VmDescription& vm_;
  std::span<const GuestGpu> machine_;
  std::vector<AttachedGpu> gpus_;
  std::vector<GuestGpu> cards_;
  CheckedFile checked_;
};

}  // namespace

CheckedFile check_description(const VmDescription& vm, std::span<const GuestGpu> machine) {
  return DescriptionCheck(vm, machine).run();
}

}  // namespace gantry::hypervisor
