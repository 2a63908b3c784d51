// SPDX-License-Identifier: Apache-2.0
// One GPU as far as MIG is concerned: its mode, the profiles that it offers, where instances of
// them can begin, and the instances that it has. Plain values, read through NVML by `gantry-nvml
// mig`.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/model/pci_address.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::mig {

// In memory slices for GPU instances, in compute slices for compute instances.
struct Placement {
  unsigned start = 0;
  unsigned size = 0;
  auto operator<=>(const Placement&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct ComputeProfile {
  std::string name;               // "1c.3g.71gb"; the one over the whole GPU instance: "3g.71gb"
  unsigned id = 0;                // NVML's number of it, for the creation
  unsigned slices = 0;            // compute slices
  unsigned max = 0;               // how many of it one GPU instance can have
  std::vector<Placement> places;  // by start
  bool operator==(const ComputeProfile&) const = default;
};

struct GpuProfile {
  std::string name;     // "1g.18gb", "1g.18gb+me"
  unsigned id = 0;      // NVML's number of it, for the creation: 19
  unsigned slices = 0;  // compute slices
  unsigned max = 0;     // how many of it the GPU can have
  unsigned multiprocessors = 0;
  std::uint64_t memory_mib = 0;
  model::MigEngines engines;
  std::vector<Placement> places;  // by start
  std::vector<ComputeProfile> compute;
  bool operator==(const GpuProfile&) const = default;
};

struct ComputeInstance {
  unsigned id = 0;
  std::string profile;  // as in ComputeProfile
  Placement place;
  model::GpuUuid uuid;
  bool operator==(const ComputeInstance&) const = default;
};

struct GpuInstance {
  unsigned id = 0;
  std::string profile;  // as in GpuProfile
  Placement place;
  std::vector<ComputeInstance> compute;
  bool operator==(const GpuInstance&) const = default;
};

struct MigGpu {
  int index = 0;  // NVML's
  model::PciAddress pci;
  model::GpuUuid uuid;
  std::string name;             // "NVIDIA H200"
  std::uint32_t device_id = 0;  // 0x233510DE: device << 16 | vendor
  model::MigMode current = model::MigMode::Unknown;
  model::MigMode pending = model::MigMode::Unknown;
  std::vector<GpuProfile> profiles;
  std::vector<GpuInstance> instances;  // by place
  std::uint32_t subsystem_id = 0;      // as device_id; 0 if it is not known
  bool operator==(const MigGpu&) const = default;
};

}  // namespace gantry::mig
