// SPDX-License-Identifier: Apache-2.0
// Computes what a node offers: resources with their devices, from the machine and the
// configuration. Each GPU has exactly one use. Pure.
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

// The use of one GPU, and the setting that decides it.
struct GpuUse {
  model::GpuUuid gpu;
  model::PciAddress pci;
  int index = 0;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::string why;  // "config.yaml:12", "--mig-strategy=mixed", "the default"
  bool operator==(const GpuUse&) const = default;
};

// A shared GPU, and how much of it can be allocated.
struct SharedGpu {
  model::GpuUuid gpu;
  int index = 0;
  std::uint64_t mib = 0;
  bool operator==(const SharedGpu&) const = default;
};

// The shared GPUs. The kubelet gets tokens that do not name a GPU: aliyun.com/gpu-mem, one for each
// GiB (in MiB there would be too many, so that amount is only in the node's capacity), slots of
// gantry.dev/share, and slots of nvidia.com/gpu if every GPU is shared.
struct SharedGpus {
  std::vector<SharedGpu> cards;  // by index
  std::uint64_t unit_mib = 1024;
  std::uint32_t slots = 32;  // for each GPU
  bool everything = false;   // every GPU is shared
  bool operator==(const SharedGpus&) const = default;
};
inline constexpr std::string_view kMemoryResource = "aliyun.com/gpu-mem";
inline constexpr std::string_view kShareResource = "gantry.dev/share";

struct Offer {
  std::vector<model::AdvertisedResource> resources;  // by name
  std::vector<GpuUse> uses;  // of every GPU, also of those that are not offered
  SharedGpus shared;
  std::vector<std::string> notes;  // what is not offered and why, one sentence each
  bool operator==(const Offer&) const = default;
};

// Invalid, naming both, if two settings claim the same GPU; Unsupported if the MIG layout does not
// match the strategy; both with a remedy. A GPU that is not in the inventory has no entry. A lost
// GPU keeps its entry, so that its health can be reported.
Result<Offer> resources(const model::Inventory& machine, const options::Options& options);

// Whether the kubelet can give a device of this GPU, other than these MIG instances, to a pod, or a
// pod a share of it.
bool offers_gpu(const Offer& offer, const model::PciAddress& gpu,
                std::span<const std::string> instances = {});

// Computes the tokens again after cards were removed from offer.shared.cards.
void rebuild_tokens(Offer& offer);

// The name of the share of a container with these ids. It depends only on the ids.
std::string slot_name(std::string_view resource, std::span<const std::string> ids);

}  // namespace gantry::resources
