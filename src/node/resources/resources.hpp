// SPDX-License-Identifier: Apache-2.0
// What a node offers: from what the machine has and what was configured to resources with their
// devices. Each GPU is in exactly one use. Pure.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/inventory.hpp"
#include "node/options/options.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::resources {

// What one GPU is used for, and who said so.
struct GpuUse {
  model::GpuUuid gpu;
  int index = 0;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::string why;  // "config.yaml:12", "--mig-strategy=mixed", "the default"
  bool operator==(const GpuUse&) const = default;
};

// A GPU in shares, and how much of it may be promised.
struct SharedGpu {
  model::GpuUuid gpu;
  int index = 0;
  std::uint64_t mib = 0;
  bool operator==(const SharedGpu&) const = default;
};

// The GPUs in shares. The kubelet gets tokens for them, which name none: aliyun.com/gpu-mem, one
// for each GiB (in MiB they would be too many: that amount is the node's capacity alone), slots of
// gantry.dev/share, and slots of nvidia.com/gpu where every GPU is in shares.
struct SharedGpus {
  std::vector<SharedGpu> cards;  // by index
  std::uint64_t unit_mib = 1024;
  std::uint32_t slots = 32;  // of each
  bool everything = false;   // no GPU is offered otherwise
  bool operator==(const SharedGpus&) const = default;
};
inline constexpr std::string_view kMemoryResource = "aliyun.com/gpu-mem";
inline constexpr std::string_view kShareResource = "gantry.dev/share";

struct Offer {
  std::vector<model::AdvertisedResource> resources;  // by name
  std::vector<GpuUse> uses;                          // of every GPU, also of those not offered
  SharedGpus shared;
  std::vector<std::string> notes;  // what is not offered and why, one sentence each
  bool operator==(const Offer&) const = default;
};

// Invalid, naming both, where two settings claim the same GPU; Unsupported where a MIG layout does
// not fit the strategy; each with what helps. A GPU that is not in the inventory has no entry; one
// that is lost keeps its own, for health to speak about.
Result<Offer> resources(const model::Inventory& machine, const options::Options& options);

// The tokens anew, after some of offer.shared.cards were taken out.
void rebuild_tokens(Offer& offer);

// How the share of a container with these ids is called: by them alone, whoever it is for.
std::string slot_name(std::string_view resource, std::span<const std::string> ids);

}  // namespace gantry::resources
