// SPDX-License-Identifier: Apache-2.0
// The writers, one for each hypervisor, and what they share. write_config.cpp checks the
// specification before it calls one.
#pragma once

#include "vm/hypervisor/guest_nodes.hpp"
#include "vm/hypervisor/write_config.hpp"

#include <string>
#include <string_view>

namespace gantry::hypervisor {

Result<WrittenConfig> write_qemu(const VmSpec& vm);
Result<WrittenConfig> write_libvirt(const VmSpec& vm);
Result<WrittenConfig> write_cloud_hypervisor(const VmSpec& vm);
Result<WrittenConfig> write_esxi(const VmSpec& vm);
Result<WrittenConfig> write_proxmox(const VmSpec& vm);
Result<WrittenConfig> write_openstack(const VmSpec& vm);

// The UUID of the VM. Derived from its name and GPUs unless it was given, so that a second run
// writes the same file. NVIDIA's vGPU manager finds the VM by it.
std::string vm_uuid(const VmSpec& vm);

// "/sys/bus/pci/devices/0000:3b:00.4" or "/sys/bus/mdev/devices/UUID"
std::string sysfs_device(const GuestGpu& gpu);

// "VFIO pins ..." and so on: what is true for every hypervisor on Linux.
void add_linux_notes(const VmSpec& vm, WrittenConfig& config);

}  // namespace gantry::hypervisor
