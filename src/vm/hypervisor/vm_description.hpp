// SPDX-License-Identifier: Apache-2.0
// What a QEMU command line or a libvirt domain says about the GPUs of a virtual machine: the common
// form that check.cpp judges.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/pci_address.hpp"
#include "vm/hypervisor/qemu_command.hpp"
#include "vm/hypervisor/xml.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::hypervisor {

struct AttachedDevice {
  std::optional<model::PciAddress> host;  // a PCI function; nullopt: a mediated device
  std::string mdev_uuid;
  std::optional<bool> managed;  // libvirt only
  bool root_port = false;       // it is behind a PCIe port
  std::optional<int> guest_node;
  int line = 0;
};

struct VmDescription {
  bool libvirt = false;
  bool q35 = false;
  bool efi = false;
  bool host_phys_bits = false;
  bool has_uuid = false;
  bool locked = false;  // <locked/>
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> window_bytes;      // opt/ovmf/X-PciMmio64Mb
  std::optional<std::uint64_t> lock_limit_bytes;  // hard_limit or ulimit -l
  std::vector<AttachedDevice> devices;
};

Result<VmDescription> describe_qemu(std::string_view text);
Result<VmDescription> describe_domain(std::string_view text);

namespace detail {
// The parts of a QEMU command line that may also stand in <qemu:commandline>.
Status read_qemu_option(const QemuOption& option, VmDescription& vm);
}  // namespace detail

}  // namespace gantry::hypervisor
