// SPDX-License-Identifier: Apache-2.0
// sharing.timeSlicing and sharing.mps: which devices are offered several times, and under which
// name.
#include "node/resources/resources_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::resources {
namespace {

using model::AllocationMode;

bool names(const std::string& id, const DeviceCandidate& part) {
  const auto& gpu = *part.claim->gpu;
  if (matches_id(gpu, id)) return true;
  if (part.mig == nullptr) return false;
  return part.mig->uuid.text == id || fmt::format("{}:{}", gpu.index, part.mig->index) == id;
}

std::string sharing_at(const options::SharedResource& entry) {
  return fmt::format("sharing at {}", entry.where);
}

class SharingRules {
 public:
  SharingRules(const options::Options& options, std::vector<DeviceCandidate>& parts, Offer& offer)
      : options_(options),
        parts_(parts),
        offer_(offer),
        aims_(parts.size(), RuleSpecificity::Default) {}

  Status run() {
    for (const auto aim : {RuleSpecificity::ByName, RuleSpecificity::Count, RuleSpecificity::All}) {
      for (const auto& entry : options_.sharing.resources) {
        if (specificity_of(entry.devices) == aim) GANTRY_CHECK(apply(entry, aim));
      }
    }
    if (options_.sharing.kind == options::SharingKind::Mps) leave_out_beside_mps();
    return {};
  }

 private:
  Status apply(const options::SharedResource& entry, RuleSpecificity aim) {
    if (aim == RuleSpecificity::ByName) return apply_named(entry);
    auto left = aim == RuleSpecificity::Count ? entry.devices.count : std::int64_t{1} << 32;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (base_[i] != entry.name) continue;
      const bool taken = parts_[i].by != nullptr && aims_[i] > aim;
      if (taken || (aim == RuleSpecificity::Count && parts_[i].by != nullptr)) continue;
      if (left-- <= 0) break;
      GANTRY_CHECK(take(i, entry, aim));
    }
    return {};
  }

  // Every container of the resource gets the pipes of its MPS daemon, so a GPU without the daemon
  // cannot have the same name.
  void leave_out_beside_mps() {
    const auto beside = [&](const DeviceCandidate& part) {
      return part.by == nullptr && part.claim->rule == nullptr &&
             std::any_of(parts_.begin(), parts_.end(), [&](const DeviceCandidate& other) {
               return other.by != nullptr && other.name == part.name;
             });
    };
    std::vector<DeviceCandidate> kept;
    for (auto& part : parts_) {
      if (!beside(part)) {
        kept.push_back(part);
        continue;
      }
      offer_.notes.push_back(fmt::format(
          "{} is not offered: sharing.mps shares other GPUs as {}; `rename` or renameByDefault "
          "gives those another name",
          describe(part), part.name));
    }
    parts_ = std::move(kept);
  }

  Status apply_named(const options::SharedResource& entry) {
    for (const auto& id : entry.devices.ids) {
      bool found = false;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (base_[i] != entry.name || !names(id, parts_[i])) continue;
        found = true;
        GANTRY_CHECK(take(i, entry, RuleSpecificity::ByName));
      }
      if (!found) {
        offer_.notes.push_back(
            fmt::format("{}: `{}` is not a device of {} now", entry.where, id, entry.name));
      }
    }
    return {};
  }

  // A more specific rule of gantry.gpus wins; an equally specific one is a conflict.
  Status take(std::size_t i, const options::SharedResource& entry, RuleSpecificity aim) {
    auto& part = parts_[i];
    if (part.by == &entry) return {};
    if (part.by != nullptr) return twice(part, sharing_at(*part.by), entry);
    const auto& claim = *part.claim;
    if (claim.rule != nullptr) {
      if (claim.aim == aim) return twice(part, claim.why, entry);
      if (claim.aim > aim) return {};
      if (claim.use != AllocationMode::Whole) return twice(part, claim.why, entry);
    }
    if (part.mig != nullptr && options_.sharing.kind == options::SharingKind::Mps) {
      return Error(
          Errc::Invalid,
          fmt::format(
              "{} asks for MPS on {}: MPS does not run on MIG instances; use sharing.timeSlicing",
              sharing_at(entry), describe(part)));
    }
    part.by = &entry;
    aims_[i] = aim;
    part.replicas = entry.replicas;
    part.why = sharing_at(entry);
    if (!entry.rename.empty()) {
      part.name = entry.rename;
    } else if (options_.sharing.rename_by_default) {
      GANTRY_TRY(part.name, options::resource_name(part.name + ".shared").in(entry.where));
    }
    return {};
  }

  static Error twice(const DeviceCandidate& part, std::string_view first,
                     const options::SharedResource& second) {
    return {Errc::Invalid,
            fmt::format(
                "{} is claimed twice: by {} and by {}; it can be used in only one way at a time",
                describe(part), first, sharing_at(second))};
  }

  static std::vector<std::string> names_of(const std::vector<DeviceCandidate>& parts) {
    std::vector<std::string> result;
    result.reserve(parts.size());
    for (const auto& part : parts) result.push_back(part.name);
    return result;
  }

  const options::Options& options_;
  std::vector<DeviceCandidate>& parts_;
  Offer& offer_;
  std::vector<RuleSpecificity> aims_;
  std::vector<std::string> base_ = names_of(parts_);  // before renaming
};

}  // namespace

std::string describe(const DeviceCandidate& part) {
  if (part.mig == nullptr) return fmt::format("GPU {}", part.claim->gpu->index);
  return fmt::format("MIG instance {}:{}", part.claim->gpu->index, part.mig->index);
}

Status share(const options::Options& options, std::vector<DeviceCandidate>& parts, Offer& offer) {
  return SharingRules(options, parts, offer).run();
}

}  // namespace gantry::resources
