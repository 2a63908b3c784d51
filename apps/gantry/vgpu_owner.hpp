// SPDX-License-Identifier: Apache-2.0
// Joins `gantry vgpu` with the ledger of owners: a GPU with vGPUs belongs to virtual machines, and
// one that lost its last vGPU belongs to the device plugin again.
#pragma once

#include "gantry/command.hpp"
#include "vm/vgpu/change.hpp"
#include "vm/vgpu/vgpu_host.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace gantry::cli {

// The GPUs that a change is about, by what they have afterwards.
struct VgpuOwners {
  std::set<model::PciAddress> with_vgpus;
  std::set<model::PciAddress> without_vgpus;
};

VgpuOwners owners_after_create(const model::PciAddress& gpu);
VgpuOwners owners_after_remove(const std::vector<vgpu::VgpuGpu>& gpus,
                               const std::vector<std::string>& ids);
VgpuOwners owners_after_apply(const std::vector<vgpu::DesiredVgpus>& wanted);
// Also the GPUs of a change that was interrupted, in the journal or in the ledger only.
Result<VgpuOwners> owners_after_restore(const sys::Host& host);

// Runs `act` as the owner of the GPUs whose owner changes, through the agent if one runs. A GPU
// that has this owner already needs no lease: other virtual machines may use its vGPUs.
Result<vgpu::ChangeReport> with_vgpu_lease(const sys::Host& host, const VgpuOwners& owners,
                                           Context& context,
                                           const std::function<Result<vgpu::ChangeReport>()>& act);

}  // namespace gantry::cli
