// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/guest.hpp"

#include "base/core/text.hpp"
#include "gpu/procfs/cpuinfo.hpp"

#include <array>
#include <string_view>

namespace gantry::doctor {
namespace {

struct Vendor {
  std::string_view text;  // in sys_vendor or product_name
  Hypervisor hypervisor;
  std::string_view name;
  bool only_with_flag;  // the vendor also has bare-metal machines
};

constexpr std::array kVendors{
    Vendor{"VMware", Hypervisor::Vmware, "VMware", false},
    Vendor{"QEMU", Hypervisor::Qemu, "QEMU", false},
    Vendor{"KVM", Hypervisor::Qemu, "KVM", false},
    Vendor{"KubeVirt", Hypervisor::Qemu, "KubeVirt", false},
    Vendor{"OpenStack", Hypervisor::Qemu, "OpenStack", false},
    Vendor{"Virtual Machine", Hypervisor::HyperV, "Hyper-V", false},
    Vendor{"HVM domU", Hypervisor::Xen, "Xen", false},
    Vendor{"Xen", Hypervisor::Xen, "Xen", false},
    Vendor{"VirtualBox", Hypervisor::VirtualBox, "VirtualBox", false},
    Vendor{"Google", Hypervisor::Cloud, "Google Compute Engine", true},
    Vendor{"Amazon EC2", Hypervisor::Cloud, "Amazon EC2", true},
    Vendor{"Alibaba Cloud", Hypervisor::Cloud, "Alibaba Cloud", true},
    Vendor{"OracleCloud", Hypervisor::Cloud, "Oracle Cloud", true},
};

}  // namespace

Guest detect_guest(const sys::Host& host) {
  Guest guest;
  const auto cpuinfo = host.read("/proc/cpuinfo", std::size_t{32} << 20);
  const bool flag = cpuinfo.ok() && procfs::has_hypervisor_flag(*cpuinfo);
  if (cpuinfo.ok()) {
    guest.known = true;
    guest.evidence.push_back({"/proc/cpuinfo", flag ? "flag hypervisor" : "no flag hypervisor"});
  }
  if (flag) guest.hypervisor = Hypervisor::Unnamed;

  std::string dmi;
  for (std::string_view file : {"/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"}) {
    const auto value = host.read_value(file);
    if (!value) continue;
    guest.known = true;
    guest.evidence.push_back({std::string(file), *value});
    dmi += *value + "\n";
  }
  for (const auto& vendor : kVendors) {
    if (!contains(dmi, vendor.text) || (vendor.only_with_flag && !flag)) continue;
    guest.hypervisor = vendor.hypervisor;
    guest.name = vendor.name;
    break;
  }
  if (host.read_value("/sys/hypervisor/type") == "xen" && flag) {
    guest.hypervisor = Hypervisor::Xen;
    guest.name = "Xen";
  }
  const auto release = to_lower(host.read_value("/proc/sys/kernel/osrelease").value_or(""));
  guest.wsl = contains(release, "microsoft") || host.exists("/dev/dxg");
  if (guest.wsl) guest.evidence.push_back({"/proc/sys/kernel/osrelease", release});
  return guest;
}

}  // namespace gantry::doctor
