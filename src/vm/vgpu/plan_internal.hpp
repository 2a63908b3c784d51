// SPDX-License-Identifier: Apache-2.0
// The parts of the planner for one GPU.
#pragma once

#include "vm/vgpu/plan.hpp"

namespace gantry::vgpu {

struct TypeCount {
  const VgpuType* type = nullptr;
  unsigned count = 0;
};

std::uint64_t framebuffer_of(const VgpuGpu& gpu, const Vgpu& vgpu);
bool is_mig_backed(const VgpuType& type);

// The types of a GPU by their names; the same type under two names counts once.
Result<std::vector<TypeCount>> resolve_types(const VgpuGpu& gpu,
                                             const std::map<std::string, unsigned>& counts);

// Whether the GPU can have these vGPUs and no others.
Status check_fit(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted);

// Whether the missing vGPUs of mixed sizes have places beside those that stay where they are. Only
// vendor-VFIO tells the places (in GiB); without them the driver decides.
Status check_places(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted,
                    const std::vector<const Vgpu*>& kept);

bool needs_mixed(const std::vector<TypeCount>& wanted);

Error in_use(const VgpuGpu& gpu, const Vgpu& vgpu);
Error not_a_type(const VgpuGpu& gpu, std::string_view key);
Error no_vgpus(const VgpuGpu& gpu);

}  // namespace gantry::vgpu
