// SPDX-License-Identifier: Apache-2.0
// OpenStack: the [pci] section of nova.conf and the properties of flavor and image.
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "vm/hypervisor/mmio.hpp"
#include "vm/hypervisor/writers_internal.hpp"

#include <fmt/format.h>

#include <cctype>
#include <map>

namespace gantry::hypervisor {
namespace {

// "NVIDIA H200" -> "h200": part of a command and of a JSON text.
std::string alias_of(const GuestGpu& gpu) {
  std::string name;
  for (const char c : to_lower(gpu.name)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  for (std::string_view prefix : {"nvidia-", "tesla-"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  while (name.ends_with('-')) name.pop_back();
  if (name.empty()) name = fmt::format("gpu-{:04x}", gpu.device);
  return gpu.attachment == Attachment::VendorVfio ? name + "-vgpu" : name;
}

std::string resource_class(const GuestGpu& gpu) {
  std::string name = "CUSTOM_";
  for (const char c : alias_of(gpu)) {
    const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    name += c == '-' ? '_' : upper;
  }
  return name;
}

std::string_view device_type(const GuestGpu& gpu) {
  if (gpu.attachment == Attachment::VendorVfio) return "type-VF";
  return gpu.sriov ? "type-PF" : "type-PCI";
}

void add_ids(json::Writer& out, const GuestGpu& gpu) {
  out.member("vendor_id", fmt::format("{:04x}", gpu.vendor));
  out.member("product_id", fmt::format("{:04x}", gpu.device));
}

std::string device_spec(const GuestGpu& gpu) {
  json::Writer out(json::Layout::Spaced);
  out.object([&] {
    add_ids(out, gpu);
    out.member("address", gpu.address.sysfs());
    if (gpu.attachment == Attachment::VendorVfio) {
      // nova must not bind the function to vfio-pci: the kernel would refuse it.
      out.member("managed", "no");
      out.member("resource_class", resource_class(gpu));
    }
  });
  return std::move(out).text();
}

std::string alias_line(const GuestGpu& gpu) {
  json::Writer out(json::Layout::Spaced);
  out.object([&] {
    out.member("name", alias_of(gpu));
    if (gpu.attachment == Attachment::VendorVfio) {
      out.member("resource_class", resource_class(gpu));
    } else {
      add_ids(out, gpu);
    }
    out.member("device_type", device_type(gpu));
    out.member("numa_policy", gpu.numa_node ? "required" : "preferred");
  });
  return std::move(out).text();
}

std::string flavor_lines(const VmSpec& vm, const std::string& aliases) {
  auto text = fmt::format(
      "openstack flavor create --vcpus {} --ram {} --disk 100 {}\n"
      "openstack flavor set {} --property 'pci_passthrough:alias={}'",
      vm.cpus, vm.memory_bytes / kMiB, vm.name, vm.name, aliases);
  if (vm.huge_pages != HugePages::None) {
    text += fmt::format(" --property hw:mem_page_size={}",
                        vm.huge_pages == HugePages::Size1G ? "1GB" : "2MB");
    text += " --property hw:locked_memory=true";  // nova takes it only with a page size
  }
  return text + " --property hw:maxphysaddr_mode=passthrough\n";
}

}  // namespace

Result<WrittenConfig> write_openstack(const VmSpec& vm) {
  if (vm.iommufd)
    return Error(Errc::Unsupported, "--iommufd is for qemu and libvirt only; leave it out");
  WrittenConfig config;
  config.text = "# nova.conf of the compute node; the alias also for nova-api\n[pci]\n";
  std::map<std::string, int> counts;
  std::string aliases;
  for (const auto& gpu : vm.gpus) {
    if (gpu.attachment == Attachment::Mdev) {
      return Error(Errc::Unsupported,
                   "nova creates mediated devices itself: set [devices] enabled_mdev_types = " +
                       (gpu.vgpu_type.empty() ? "TYPE" : gpu.vgpu_type) +
                       " in nova.conf and resources:VGPU=1 in the flavor");
    }
    config.text += "device_spec = " + device_spec(gpu) + "\n";
    if (counts[alias_of(gpu)]++ == 0) aliases += "alias = " + alias_line(gpu) + "\n";
  }
  config.text += aliases;
  std::string wanted;
  for (const auto& [name, count] : counts) {
    wanted += fmt::format("{}{}:{}", wanted.empty() ? "" : ",", name, count);
  }
  config.text += "\n# once, with the rights of an administrator\n" + flavor_lines(vm, wanted);
  config.text += fmt::format(
      "openstack image set \"$IMAGE\" --property hw_machine_type=q35 --property "
      "hw_firmware_type={}\n",
      vm.firmware == Firmware::Efi ? "uefi" : "bios");
  config.notes = {"set IMAGE first: IMAGE=ubuntu-24.04"};
  if (mmio_window(vm.gpus) > kDefaultWindow) {
    config.notes.push_back(fmt::format(
        "nova cannot set the MMIO window of {}; it needs an OVMF of edk2 202211 or later, which "
        "sizes the window by the processor's address bits",
        human_bytes(mmio_window(vm.gpus))));
  }
  add_linux_notes(vm, config);
  return config;
}

}  // namespace gantry::hypervisor
