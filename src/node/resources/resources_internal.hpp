// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node/resources/resources.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::resources {

// How precisely a setting names a device; the more precise setting is used.
enum class RuleSpecificity : std::uint8_t { Default, All, Count, ByName };

RuleSpecificity specificity_of(const options::DeviceChoice& choice);

// The use of one GPU, before sharing is applied.
struct GpuAssignment {
  const model::Gpu* gpu = nullptr;
  model::AllocationMode use = model::AllocationMode::Whole;
  RuleSpecificity aim = RuleSpecificity::Default;
  const options::GpuRule* rule = nullptr;  // nullptr: the default
  std::string why;
};

// The GPUs of the machine that can be offered, by index.
std::vector<const model::Gpu*> usable_gpus(const model::Inventory& machine, Offer& offer);

// Applies gantry.gpus and the MIG strategy. Invalid if two rules claim one GPU, or if a rule
// contradicts the GPU's MIG mode.
Result<std::vector<GpuAssignment>> claims(const std::vector<const model::Gpu*>& gpus,
                                          const options::Options& options, Offer& offer);

// Unsupported unless all MIG instances of the machine have the same profile.
Status check_single(const std::vector<GpuAssignment>& claims);

// A GPU or a MIG instance that may be offered.
struct DeviceCandidate {
  const GpuAssignment* claim = nullptr;
  const model::MigInstance* mig = nullptr;
  std::string name;                             // of the resource
  std::int64_t replicas = 0;                    // 0: not shared
  const options::SharedResource* by = nullptr;  // the setting that shares it
  std::string why;
};

// Applies sharing.*.resources[] to the candidates: sets replicas and names.
Status share(const options::Options& options, std::vector<DeviceCandidate>& parts, Offer& offer);

std::string describe(const DeviceCandidate& part);  // "GPU 0", "MIG instance 0:1"
bool matches_id(const model::Gpu& gpu, std::string_view id);

Result<Offer> gke_resources(const model::Inventory& machine, const options::Options& options);

}  // namespace gantry::resources
