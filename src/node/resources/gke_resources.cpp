// SPDX-License-Identifier: Apache-2.0
// Offers GPUs as GKE's plugin does: one resource, devices with the names of their nodes.
#include "node/resources/resources_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::resources {
namespace {

using model::AdvertisedDevice;
using model::AllocationMode;

struct Partition {
  std::string_view size;
  std::size_t count;  // the maximum for a GPU
};
constexpr std::array kPartitions{
    Partition{"1g.5gb", 7},      Partition{"2g.10gb", 3},        Partition{"3g.20gb", 2},
    Partition{"4g.20gb", 1},     Partition{"7g.40gb", 1},        Partition{"1g.10gb", 7},
    Partition{"1g.20gb", 4},     Partition{"2g.20gb", 3},        Partition{"3g.40gb", 2},
    Partition{"4g.40gb", 1},     Partition{"7g.80gb", 1},        Partition{"1g.18gb", 7},
    Partition{"1g.35gb", 4},     Partition{"2g.35gb", 3},        Partition{"3g.71gb", 2},
    Partition{"4g.71gb", 1},     Partition{"7g.141gb", 1},       Partition{"1g.23gb", 7},
    Partition{"1g.45gb", 4},     Partition{"2g.45gb", 3},        Partition{"3g.90gb", 2},
    Partition{"4g.90gb", 1},     Partition{"7g.180gb", 1},       Partition{"1g.47gb", 4},
    Partition{"2g.47gb", 3},     Partition{"3g.93gb", 2},        Partition{"4g.93gb", 1},
    Partition{"7g.186gb", 1},    Partition{"1g.24gb", 4},        Partition{"1g.24gb+me", 1},
    Partition{"1g.24gb+gfx", 4}, Partition{"1g.24gb+me.all", 1}, Partition{"1g.24gb-me", 4},
    Partition{"2g.48gb", 2},     Partition{"2g.48gb+gfx", 2},    Partition{"2g.48gb+me.all", 1},
    Partition{"2g.48gb-me", 2},  Partition{"4g.96gb", 1},        Partition{"4g.96gb+gfx", 1},
};

Result<std::size_t> wanted_count(const std::string& size) {
  const auto* found = std::find_if(kPartitions.begin(), kPartitions.end(),
                                   [&](const Partition& p) { return p.size == size; });
  if (found == kPartitions.end()) {
    return Error(
        Errc::Invalid,
        fmt::format("GPUPartitionSize `{}` is not a size into which a GPU can be divided", size));
  }
  return found->count;
}

Status check_divided(const model::Gpu& gpu, const std::string& size, std::size_t count) {
  const auto& instances = gpu.mig.instances;
  const bool alike = std::all_of(instances.begin(), instances.end(),
                                 [&](const auto& mig) { return mig.profile == size; });
  if (alike && instances.size() == count) return {};
  return Error(
      Errc::Unsupported,
      fmt::format("GPU {} must be divided into {} of {} (GPUPartitionSize) but has {} instances{}; "
                  "run partition_gpu, or nvidia-smi mig",
                  gpu.index, count, size, instances.size(), alike ? "" : " of other sizes"));
}

void add_clients(AdvertisedDevice device, const options::GkeConfig& config,
                 model::AdvertisedResource& resource) {
  if (config.sharing == options::SharingKind::None) {
    resource.devices.push_back(std::move(device));
    return;
  }
  const auto unit = device.id;
  for (int i = 0; i < static_cast<int>(config.clients_per_gpu); ++i) {
    device.id = fmt::format("{}/vgpu{}", unit, i);
    device.replica = i;
    resource.devices.push_back(device);
  }
}

AllocationMode use_of(const options::GkeConfig& config) {
  if (!config.partition_size.empty()) return AllocationMode::Mig;
  switch (config.sharing) {
    case options::SharingKind::None: return AllocationMode::Whole;
    case options::SharingKind::TimeSlicing: return AllocationMode::Replicas;
    case options::SharingKind::Mps: return AllocationMode::Shares;
  }
  return AllocationMode::Whole;
}

}  // namespace

Result<Offer> gke_resources(const model::Inventory& machine, const options::Options& options) {
  const auto& config = options.gke_config;
  Offer offer;
  const auto gpus = usable_gpus(machine, offer);
  std::size_t count = 0;
  if (!config.partition_size.empty()) {
    GANTRY_TRY(count, wanted_count(config.partition_size));
  }
  model::AdvertisedResource resource{.name = "nvidia.com/gpu", .use = use_of(config)};
  resource.only_one = config.sharing == options::SharingKind::TimeSlicing ||
                      (config.sharing == options::SharingKind::Mps && gpus.size() > 1);
  for (const auto* gpu : gpus) {
    if (!gpu->minor) {
      offer.notes.push_back(
          fmt::format("GPU {} has no minor number and cannot be offered", gpu->index));
      continue;
    }
    const auto node = fmt::format("nvidia{}", *gpu->minor);
    offer.uses.push_back({.gpu = gpu->uuid,
                          .pci = gpu->pci,
                          .index = gpu->index,
                          .use = resource.use,
                          .why = options.gke.gpu_config});
    AdvertisedDevice device{.id = node, .gpu = gpu->uuid, .numa_node = gpu->numa_node};
    if (count == 0) {
      add_clients(std::move(device), config, resource);
      continue;
    }
    GANTRY_CHECK(check_divided(*gpu, config.partition_size, count));
    for (const auto& mig : gpu->mig.instances) {
      device.id = fmt::format("{}/gi{}", node, mig.gpu_instance);
      device.mig = mig.uuid;
      add_clients(device, config, resource);
    }
  }
  offer.resources.push_back(std::move(resource));
  return offer;
}

}  // namespace gantry::resources
