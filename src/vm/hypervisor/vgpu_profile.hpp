// SPDX-License-Identifier: Apache-2.0
// The names of vGPU types: "grid_t4-8q", "A100-10C", "H200X-1-18C".
#pragma once

#include "base/core/result.hpp"
#include "vm/hypervisor/guest_gpu.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::hypervisor {

struct VgpuProfile {
  std::string card;      // "t4"
  int slices = 0;        // MIG-backed: compute slices; 0 for a time-sliced type
  std::uint64_t gb = 0;  // framebuffer
  char series = 'C';     // A, B, C or Q
};

// Accepts both cases, the prefixes grid_ and nvidia_ of ESXi, and the suffixes of MIG profiles.
// Invalid, with examples, otherwise.
Result<VgpuProfile> parse_vgpu_profile(std::string_view name);

// A vGPU as a GPU with the memory of the profile: what a MMIO window is computed from.
GuestGpu gpu_of_profile(const VgpuProfile& profile);

// "NVIDIA AI Enterprise" and so on.
std::string_view licence_of(char series);

}  // namespace gantry::hypervisor
