// SPDX-License-Identifier: Apache-2.0
#include "node/resources/resources.hpp"

#include "base/core/text.hpp"
#include "node/resources/resources_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gantry::resources {
namespace {

using model::AdvertisedDevice;
using model::AdvertisedResource;
using model::AllocationMode;

constexpr std::string_view kGpu = "nvidia.com/gpu";

std::string name_by(const std::vector<options::NameRule>& rules, std::string_view text,
                    std::string otherwise) {
  for (const auto& rule : rules) {
    if (glob_match(rule.pattern, text)) return rule.name;
  }
  return otherwise;
}

// "1c.3g.71gb" has a part of the compute of its GPU instance; "3g.71gb" has all of it.
bool is_whole_instance(std::string_view profile) {
  const auto letters = profile.find_first_not_of("0123456789");
  return letters == 0 || !profile.substr(std::min(letters, profile.size())).starts_with("c.");
}

Result<std::string> profile_name(const model::MigInstance& mig, const options::Options& options) {
  auto profile = mig.profile;
  std::replace(profile.begin(), profile.end(), '+', '.');
  return options::resource_name(name_by(
      options.mig_names, mig.profile, fmt::format("{}mig-{}", options::kResourcePrefix, profile)));
}

class OfferBuilder {
 public:
  explicit OfferBuilder(const options::Options& options) : options_(options) {}

  Result<Offer> run(const model::Inventory& machine) {
    const auto gpus = usable_gpus(machine, offer_);
    GANTRY_TRY(claims_, claims(gpus, options_, offer_));
    if (options_.mig_strategy == options::MigStrategy::Single) GANTRY_CHECK(check_single(claims_));
    for (const auto& claim : claims_) GANTRY_CHECK(add_parts(claim));
    GANTRY_CHECK(share(options_, parts_, offer_));
    for (const auto& part : parts_) GANTRY_CHECK(add_devices(part));
    for (auto& [name, entry] : entries_) offer_.resources.push_back(std::move(entry.resource));
    add_uses();
    auto& shared = offer_.shared;
    shared.unit_mib = options_.shares.unit == options::MemoryUnit::MiB ? 1 : 1024;
    shared.slots = static_cast<std::uint32_t>(options_.shares.slots);
    shared.everything = std::all_of(offer_.uses.begin(), offer_.uses.end(), [](const GpuUse& use) {
      return use.use == AllocationMode::Shares;
    });
    rebuild_tokens(offer_);
    return std::move(offer_);
  }

 private:
  struct Entry {
    AdvertisedResource resource;
    const DeviceCandidate* first = nullptr;
  };

  Status add_parts(const GpuAssignment& claim) {
    const auto& gpu = *claim.gpu;
    switch (claim.use) {
      case AllocationMode::Whole:
      case AllocationMode::Replicas: add_whole(claim); return {};
      case AllocationMode::Mig: return add_instances(claim);
      case AllocationMode::Shares: add_shared(claim); return {};
      case AllocationMode::Vm:
        offer_.notes.push_back(fmt::format("GPU {} is set aside for {} ({})", gpu.index,
                                           model::to_string(claim.use), claim.why));
        return {};
    }
    return {};
  }

  void add_shared(const GpuAssignment& claim) {
    const auto& gpu = *claim.gpu;
    const auto mib = gpu.memory_bytes.value_or(0) >> 20U;
    if (mib == 0) {
      offer_.notes.push_back(fmt::format(
          "GPU {} is not offered: its memory size is not known; run `gantry doctor`", gpu.index));
      return;
    }
    offer_.shared.cards.push_back({.gpu = gpu.uuid, .index = gpu.index, .mib = mib});
  }

  // CDI specifications have the instances of a GPU in MIG mode, not the GPU.
  bool lacks_cdi_name(const model::Gpu& gpu) const {
    const auto by_name = [](options::ListStrategy strategy) {
      return strategy == options::ListStrategy::CdiCri ||
             strategy == options::ListStrategy::CdiAnnotations;
    };
    const auto& strategies = options_.list_strategies;
    return gpu.mig.current == model::MigMode::Enabled &&
           std::any_of(strategies.begin(), strategies.end(), by_name);
  }

  void add_whole(const GpuAssignment& claim) {
    const auto index = claim.gpu->index;
    if (lacks_cdi_name(*claim.gpu)) {
      offer_.notes.push_back(fmt::format(
          "GPU {0} is in MIG mode and is not offered: --mig-strategy={1} offers it whole, and a "
          "CDI "
          "specification has only its instances; use --mig-strategy=mixed, or run nvidia-smi -i "
          "{0} -mig 0",
          index, model::to_string(options_.mig_strategy)));
      return;
    }
    DeviceCandidate part{.claim = &claim,
                         .name = name_by(options_.gpu_names, claim.gpu->name, std::string(kGpu)),
                         .why = claim.why};
    if (claim.rule != nullptr) {
      if (!claim.rule->name.empty()) part.name = claim.rule->name;
      part.replicas = claim.rule->replicas;
    }
    parts_.push_back(std::move(part));
  }

  Status add_instances(const GpuAssignment& claim) {
    const auto& gpu = *claim.gpu;
    if (gpu.mig.instances.empty()) {
      offer_.notes.push_back(
          fmt::format("GPU {} is in MIG mode and has no instance, so it is not offered; nvidia-smi "
                      "mig -i {} -lgip shows the profiles that can be created",
                      gpu.index, gpu.index));
    }
    for (const auto& mig : gpu.mig.instances) {
      DeviceCandidate part{.claim = &claim, .mig = &mig, .why = claim.why};
      if (options_.mig_strategy == options::MigStrategy::Single) {
        part.name = name_by(options_.mig_names, mig.profile, std::string(kGpu));
      } else if (!is_whole_instance(mig.profile)) {
        offer_.notes.push_back(fmt::format(
            "MIG instance {}:{} ({}) has only a part of its GPU instance and is not offered",
            gpu.index, mig.index, mig.profile));
        continue;
      } else {
        GANTRY_TRY(part.name, profile_name(mig, options_));
      }
      parts_.push_back(std::move(part));
    }
    return {};
  }

  AllocationMode use_of(const DeviceCandidate& part) const {
    if (part.mig != nullptr) return AllocationMode::Mig;
    if (part.replicas == 0) return AllocationMode::Whole;
    return part.by != nullptr && options_.sharing.kind == options::SharingKind::Mps
               ? AllocationMode::Shares
               : AllocationMode::Replicas;
  }

  Status add_devices(const DeviceCandidate& part) {
    GANTRY_TRY(const auto name, options::resource_name(part.name));
    auto [at, is_new] = entries_.try_emplace(name);
    auto& [resource, first] = at->second;
    if (is_new) {
      resource.name = name;
      resource.use = use_of(part);
      resource.only_one = part.replicas > 0 && options_.sharing.only_one;
      first = &part;
    } else if (use_of(*first) != use_of(part) || (first->replicas > 0) != (part.replicas > 0)) {
      if (!is_once_beside_replicas(*first, part)) return mixture(name, *first, part);
      add_once_beside_replicas(resource, *first, part);
    }
    const auto& gpu = *part.claim->gpu;
    AdvertisedDevice device{.id = part.mig != nullptr ? part.mig->uuid.text : gpu.uuid.text,
                            .gpu = gpu.uuid,
                            .numa_node = gpu.numa_node};
    if (part.mig != nullptr) device.mig = part.mig->uuid;
    if (part.replicas == 0) {
      resource.devices.push_back(std::move(device));
      return {};
    }
    const auto unit = device.id;
    for (int i = 0; i < static_cast<int>(part.replicas); ++i) {
      device.id = fmt::format("{}::{}", unit, i);
      device.replica = i;
      resource.devices.push_back(device);
    }
    return {};
  }

  // sharing.timeSlicing names some devices of a resource and no other name for them. The others are
  // offered once, as NVIDIA's plugin would if it honoured the names.
  bool is_once_beside_replicas(const DeviceCandidate& a, const DeviceCandidate& b) const {
    const auto& once = a.by == nullptr ? a : b;
    const auto& shared = a.by == nullptr ? b : a;
    return options_.sharing.kind == options::SharingKind::TimeSlicing && shared.by != nullptr &&
           once.by == nullptr && once.claim->rule == nullptr &&
           (once.mig == nullptr) == (shared.mig == nullptr);
  }

  void add_once_beside_replicas(AdvertisedResource& resource, const DeviceCandidate& first,
                                const DeviceCandidate& part) {
    if (resource.use == AllocationMode::Whole) resource.use = AllocationMode::Replicas;
    resource.only_one = resource.only_one || options_.sharing.only_one;
    auto note = fmt::format(
        "{} has replicas of some devices ({}) and others once: a container cannot know which it "
        "gets; `rename` or renameByDefault gives the replicas another name",
        resource.name, first.by == nullptr ? part.why : first.why);
    if (std::find(offer_.notes.begin(), offer_.notes.end(), note) == offer_.notes.end())
      offer_.notes.push_back(std::move(note));
  }

  // A pod that asks for such a resource could not know what it gets.
  Error mixture(const std::string& name, const DeviceCandidate& first,
                const DeviceCandidate& second) const {
    const auto what = [&](const DeviceCandidate& part) {
      return fmt::format("{} as {}{} ({})", describe(part),
                         part.mig != nullptr && part.replicas > 0 ? "shared " : "",
                         model::to_string(use_of(part)), part.why);
    };
    return {Errc::Invalid, fmt::format("{} would be both {} and {}; give one of them another name "
                                       "with renameByDefault, rename or gantry.gpus[].name",
                                       name, what(first), what(second))};
  }

  void add_uses() {
    for (const auto& claim : claims_) {
      GpuUse use{.gpu = claim.gpu->uuid,
                 .pci = claim.gpu->pci,
                 .index = claim.gpu->index,
                 .use = claim.use,
                 .why = claim.why};
      for (const auto& part : parts_) {
        if (part.claim != &claim || part.mig != nullptr) continue;
        use.use = use_of(part);
        use.why = part.why;
      }
      offer_.uses.push_back(std::move(use));
    }
  }

  const options::Options& options_;
  Offer offer_;
  std::vector<GpuAssignment> claims_;
  std::vector<DeviceCandidate> parts_;
  std::map<std::string, Entry> entries_;
};

}  // namespace

bool offers_gpu(const Offer& offer, const model::PciAddress& gpu,
                std::span<const std::string> instances) {
  const auto use = std::find_if(offer.uses.begin(), offer.uses.end(),
                                [&](const GpuUse& one) { return one.pci == gpu; });
  if (use == offer.uses.end()) return false;
  const auto of_gpu = [&](const auto& part) { return part.gpu == use->gpu; };
  const auto has_device = [&](const model::AdvertisedResource& resource) {
    return std::any_of(resource.devices.begin(), resource.devices.end(), [&](const auto& device) {
      const auto& mig = device.mig.text;
      return of_gpu(device) &&
             (mig.empty() || std::find(instances.begin(), instances.end(), mig) == instances.end());
    });
  };
  return std::any_of(offer.resources.begin(), offer.resources.end(), has_device) ||
         std::any_of(offer.shared.cards.begin(), offer.shared.cards.end(), of_gpu);
}

Result<Offer> resources(const model::Inventory& machine, const options::Options& options) {
  if (options.program == options::Program::Gke) return gke_resources(machine, options);
  return OfferBuilder(options).run(machine);
}

}  // namespace gantry::resources
