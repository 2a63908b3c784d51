// SPDX-License-Identifier: Apache-2.0
// The kernel's part of a simulated vGPU host: what happens when a program writes to sysfs. In a
// tree of files nothing happens by itself, so `gantry vgpu` sends its writes here.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/pci_address.hpp"

#include <string>
#include <string_view>

namespace gantry::sim {

inline constexpr std::string_view kVgpuHostPath = "/.gantry-vgpu";

// Whether the tree at `root` is a simulated machine with a vGPU host driver.
bool has_vgpu_host(const std::string& root);

// A write to sriov_numvfs, mdev_supported_types/*/create, mdev/devices/*/remove or
// nvidia/current_vgpu_type. Fails with the errno of the real driver: ENOSPC for a full type, EBUSY
// for a vGPU in use, EINVAL for a wrong UUID or number.
Status write_vgpu_sysfs(const std::string& root, std::string_view path, std::string_view text);

// `nvidia-smi vgpu -shm 1`: EBUSY while the GPU has vGPUs.
Status allow_mixed_vgpus(const std::string& root, const model::PciAddress& gpu);

// The state after a reboot: no vGPUs, no virtual functions.
Status reboot_vgpu_host(const std::string& root);

}  // namespace gantry::sim
