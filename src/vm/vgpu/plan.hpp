// SPDX-License-Identifier: Apache-2.0
// From the vGPUs that exist and those that are wanted to a list of steps. Pure: it reads and writes
// nothing, so every refusal comes before the first change.
#pragma once

#include "base/core/result.hpp"
#include "vm/vgpu/vgpu_host.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vgpu {

struct DesiredVgpus {
  model::PciAddress gpu;
  std::map<std::string, unsigned> counts;  // type -> how many; all others are removed
  bool operator==(const DesiredVgpus&) const = default;
};

// A vGPU as it is stored and created: everything that tells it from the others.
struct VgpuSpec {
  model::PciAddress gpu;
  model::PciAddress parent;
  std::string type;     // "A10-4Q"
  std::string type_id;  // "nvidia-592"
  std::string uuid;     // "" for vendor-VFIO
  bool operator==(const VgpuSpec&) const = default;
  std::string id() const { return uuid.empty() ? parent.sysfs() : uuid; }
};

VgpuSpec spec_of(const Vgpu& vgpu);

struct Step {
  enum class Kind : std::uint8_t { EnableVfs, EnableMixed, Remove, Create };
  Kind kind = Kind::Create;
  VgpuSpec vgpu;       // EnableVfs, EnableMixed: only `gpu`
  unsigned count = 0;  // EnableVfs: how many virtual functions
  bool operator==(const Step&) const = default;
};
std::string describe(const Step& step);

struct Plan {
  std::vector<model::PciAddress> gpus;  // the GPUs that the request is about
  std::vector<Step> steps;
  std::vector<VgpuSpec> result;  // the vGPUs of these GPUs after all steps
  // Nothing but virtual functions is enabled: what they offer is known only afterwards. Read the
  // machine and plan again.
  bool again = false;
};

using NewUuid = std::function<std::string()>;

// Keeps every vGPU that is wanted, removes the others and creates what is missing. Errors name the
// GPU, the type and what is left: NotFound for a type that the GPU does not have, Busy if the
// vGPUs do not fit or one that must go is in use, Unsupported if the GPU has no vGPUs, Invalid for
// a combination that no GPU can have.
Result<Plan> plan_counts(const std::vector<VgpuGpu>& gpus, const std::vector<DesiredVgpus>& wanted,
                         const NewUuid& new_uuid);

// Adds `count` vGPUs and removes none. `uuid` is for the only one; "" generates it.
struct Addition {
  model::PciAddress gpu;
  std::string type;
  unsigned count = 1;
  std::string uuid;
};
Result<Plan> plan_addition(const std::vector<VgpuGpu>& gpus, const Addition& addition,
                           const NewUuid& new_uuid);

// Removes the vGPUs with these ids (a UUID or the address of a virtual function).
Result<Plan> plan_removal(const std::vector<VgpuGpu>& gpus, const std::vector<std::string>& ids);

// Exactly these vGPUs on these GPUs: after a reboot or an interrupted change.
Result<Plan> plan_exact(const std::vector<VgpuGpu>& gpus,
                        const std::vector<model::PciAddress>& addresses,
                        const std::vector<VgpuSpec>& specs);

// One request made of two that are about different GPUs.
Plan join(Plan first, Plan second);

}  // namespace gantry::vgpu
