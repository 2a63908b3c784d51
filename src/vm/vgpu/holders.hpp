// SPDX-License-Identifier: Apache-2.0
// Which processes use a vGPU: those that have its VFIO node open.
#pragma once

#include "base/sys/host.hpp"
#include "vm/vgpu/vgpu_host.hpp"

#include <map>
#include <string>
#include <vector>

namespace gantry::vgpu {

// Paths below /dev/vfio, with the processes that have them open. Only root sees the descriptors of
// other users.
using OpenVfioNodes = std::map<std::string, std::vector<unsigned>>;

OpenVfioNodes open_vfio_nodes(const sys::Host& host);

std::vector<unsigned> holders_of(const sys::Host& host, const Vgpu& vgpu,
                                 const OpenVfioNodes& open);

// "/dev/vfio/23"; "" if the kernel did not give it a group.
std::string vfio_node(const Vgpu& vgpu);

}  // namespace gantry::vgpu
