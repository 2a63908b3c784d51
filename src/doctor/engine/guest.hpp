// SPDX-License-Identifier: Apache-2.0
// Detects whether this machine is a virtual machine. This is decided first, because many things
// that are a fault on bare metal are normal in a guest.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::doctor {

struct Evidence {
  std::string source;  // a path, mostly
  std::string value;
  bool operator==(const Evidence&) const = default;
};

enum class Hypervisor : std::uint8_t {
  None,
  Unnamed,
  Vmware,
  Qemu,
  HyperV,
  Xen,
  VirtualBox,
  Cloud
};

struct Guest {
  bool known = false;  // false: neither /proc/cpuinfo nor DMI could be read
  Hypervisor hypervisor = Hypervisor::None;
  std::string name;  // "VMware", "Google Compute Engine"; "" on bare metal
  bool wsl = false;
  std::vector<Evidence> evidence;

  bool is_virtual() const { return hypervisor != Hypervisor::None; }
};

Guest detect_guest(const sys::Host& host);

}  // namespace gantry::doctor
