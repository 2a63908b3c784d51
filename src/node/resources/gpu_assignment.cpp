// SPDX-License-Identifier: Apache-2.0
// Decides the one use of each GPU, and records which setting says so.
#include "base/core/text.hpp"
#include "node/resources/resources_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::resources {
namespace {

using model::AllocationMode;
using model::MigMode;

std::string describe_rule(const options::GpuRule& rule) {
  return fmt::format("gantry.gpus at {} (use: {})", rule.where, model::to_string(rule.use));
}

Status take(GpuAssignment& claim, const options::GpuRule& rule, RuleSpecificity aim) {
  if (claim.rule != nullptr && claim.aim == aim) {
    return Error(
        Errc::Invalid,
        fmt::format(
            "GPU {} is claimed twice: by {} and by {}; a GPU can be used in only one way at a time",
            claim.gpu->index, describe_rule(*claim.rule), describe_rule(rule)));
  }
  if (claim.rule != nullptr) return {};  // another rule names it more specifically
  claim.rule = &rule;
  claim.aim = aim;
  claim.use = rule.use;
  claim.why = describe_rule(rule);
  return {};
}

Status take_named(std::vector<GpuAssignment>& claims, const options::GpuRule& rule, Offer& offer) {
  for (const auto& id : rule.devices.ids) {
    if (id.starts_with("MIG-") || contains(id, ":")) {
      return Error(Errc::Invalid,
                   fmt::format("{}: `{}` is a MIG instance; gantry.gpus takes only whole GPUs",
                               rule.where, id));
    }
    const auto found = std::find_if(claims.begin(), claims.end(), [&](const GpuAssignment& claim) {
      return matches_id(*claim.gpu, id);
    });
    if (found == claims.end()) {
      offer.notes.push_back(
          fmt::format("{}: this machine does not have GPU `{}` now", rule.where, id));
      continue;
    }
    GANTRY_CHECK(take(*found, rule, RuleSpecificity::ByName));
  }
  return {};
}

Status take_by_rules(const options::Options& options, RuleSpecificity aim,
                     std::vector<GpuAssignment>& claims, Offer& offer) {
  for (const auto& rule : options.gpus) {
    if (specificity_of(rule.devices) != aim) continue;
    if (aim == RuleSpecificity::ByName) {
      GANTRY_CHECK(take_named(claims, rule, offer));
      continue;
    }
    auto left = aim == RuleSpecificity::Count ? rule.devices.count : std::int64_t{1} << 32;
    for (auto& claim : claims) {
      const bool free = claim.rule == nullptr || (aim == RuleSpecificity::All && claim.aim == aim);
      if (!free || left-- <= 0) continue;
      GANTRY_CHECK(take(claim, rule, aim));
    }
  }
  return {};
}

Status check_mig_mode(const GpuAssignment& claim, const options::Options& options) {
  const auto& gpu = *claim.gpu;
  const bool in_mig = gpu.mig.current == MigMode::Enabled;
  if (claim.use == AllocationMode::Mig && !in_mig) {
    return Error(Errc::Invalid, fmt::format("{} asks for the MIG instances of GPU {}, which is not "
                                            "in MIG mode; run nvidia-smi -i {} -mig 1",
                                            claim.why, gpu.index, gpu.index));
  }
  if (claim.use == AllocationMode::Mig && options.mig_strategy == options::MigStrategy::None) {
    return Error(Errc::Invalid,
                 fmt::format("{} offers the MIG instances of GPU {}, but --mig-strategy=none "
                             "offers no MIG instances; use --mig-strategy=mixed",
                             claim.why, gpu.index));
  }
  if (claim.use == AllocationMode::Shares && in_mig) {
    return Error(Errc::Invalid,
                 fmt::format("{} shares GPU {}, which is in MIG mode: its instances already divide "
                             "it; run nvidia-smi -i {} -mig 0, or remove the GPU from the rule",
                             claim.why, gpu.index, gpu.index));
  }
  const bool whole = claim.use == AllocationMode::Whole || claim.use == AllocationMode::Replicas;
  if (whole && in_mig && options.mig_strategy != options::MigStrategy::None) {
    return Error(
        Errc::Invalid,
        fmt::format("{} and the MIG mode of GPU {} contradict each other under --mig-strategy={}; "
                    "run nvidia-smi -i {} -mig 0, or remove the GPU from the rule",
                    claim.why, gpu.index, model::to_string(options.mig_strategy), gpu.index));
  }
  return {};
}

bool takes_part_in_single(const GpuAssignment& claim) {
  return claim.use == AllocationMode::Mig ||
         (claim.use == AllocationMode::Whole && claim.aim != RuleSpecificity::ByName);
}

Error not_single(std::string_view what, std::string_view helps) {
  return {Errc::Unsupported,
          fmt::format("--mig-strategy=single: {}; {}, or use --mig-strategy=mixed", what, helps)};
}

}  // namespace

RuleSpecificity specificity_of(const options::DeviceChoice& choice) {
  if (choice.all) return RuleSpecificity::All;
  return choice.ids.empty() ? RuleSpecificity::Count : RuleSpecificity::ByName;
}

bool matches_id(const model::Gpu& gpu, std::string_view id) {
  return gpu.uuid.text == id || fmt::to_string(gpu.index) == id;
}

std::vector<const model::Gpu*> usable_gpus(const model::Inventory& machine, Offer& offer) {
  std::vector<const model::Gpu*> gpus;
  for (const auto& gpu : machine.gpus) {
    if (gpu.name == "DGX Display" || gpu.name == "NVIDIA DGX Display") {
      offer.notes.push_back(
          fmt::format("GPU {} is for the display ({}) and is not offered", gpu.index, gpu.name));
    } else if (gpu.uuid.text.empty()) {
      offer.notes.push_back(
          fmt::format("GPU {} has no UUID and cannot be offered; run `gantry doctor`", gpu.index));
    } else {
      gpus.push_back(&gpu);
    }
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  return gpus;
}

Result<std::vector<GpuAssignment>> claims(const std::vector<const model::Gpu*>& gpus,
                                          const options::Options& options, Offer& offer) {
  std::vector<GpuAssignment> result;
  result.reserve(gpus.size());
  for (const auto* gpu : gpus) result.push_back({.gpu = gpu});
  for (const auto aim : {RuleSpecificity::ByName, RuleSpecificity::Count, RuleSpecificity::All})
    GANTRY_CHECK(take_by_rules(options, aim, result, offer));
  for (auto& claim : result) {
    if (claim.rule != nullptr) {
      GANTRY_CHECK(check_mig_mode(claim, options));
      continue;
    }
    const bool in_mig = claim.gpu->mig.current == MigMode::Enabled;
    if (in_mig && options.mig_strategy != options::MigStrategy::None)
      claim.use = AllocationMode::Mig;
    if (claim.use == AllocationMode::Mig) {
      claim.why = fmt::format("--mig-strategy={}", model::to_string(options.mig_strategy));
    } else if (options.shares.all) {
      claim.use = AllocationMode::Shares;
      claim.why = "--share-gpus";
      GANTRY_CHECK(check_mig_mode(claim, options));
    } else {
      claim.why = "the default";
    }
  }
  return result;
}

Status check_single(const std::vector<GpuAssignment>& claims) {
  const auto is_mig = [](const GpuAssignment& claim) { return claim.use == AllocationMode::Mig; };
  const auto first = std::find_if(claims.begin(), claims.end(), is_mig);
  if (first == claims.end()) return {};
  const model::MigInstance* pattern = nullptr;
  int pattern_gpu = 0;
  for (const auto& claim : claims) {
    if (!takes_part_in_single(claim)) continue;
    const auto& gpu = *claim.gpu;
    if (!is_mig(claim)) {
      return not_single(
          fmt::format("GPU {} is in MIG mode and GPU {} is not", first->gpu->index, gpu.index),
          fmt::format("use one mode for all GPUs (nvidia-smi -i {} -mig 1)", gpu.index));
    }
    if (gpu.mig.instances.empty()) {
      return not_single(
          fmt::format("GPU {} is in MIG mode and has no instance", gpu.index),
          fmt::format("create instances (nvidia-smi mig -i {} -lgip shows the profiles)",
                      gpu.index));
    }
    for (const auto& mig : gpu.mig.instances) {
      if (pattern == nullptr) {
        pattern = &mig;
        pattern_gpu = gpu.index;
      }
      if (mig.profile == pattern->profile) continue;
      return not_single(
          fmt::format("instance {}:{} is {} and {}:{} is {}", pattern_gpu, pattern->index,
                      pattern->profile, gpu.index, mig.index, mig.profile),
          "create all instances with one profile");
    }
  }
  return {};
}

}  // namespace gantry::resources
