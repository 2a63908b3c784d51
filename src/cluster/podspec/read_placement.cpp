// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "cluster/podspec/affinity_internal.hpp"
#include "cluster/podspec/legacy_internal.hpp"
#include "cluster/podspec/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::podspec {
namespace {

const ContainerPlacement* find(const Placement& placement, std::string_view container) {
  const auto found =
      std::find_if(placement.begin(), placement.end(),
                   [&](const ContainerPlacement& placed) { return placed.container == container; });
  return found == placement.end() ? nullptr : &*found;
}

bool twice(const ContainerPlacement& placed) {
  std::set<std::string_view> seen;
  return !std::all_of(placed.parts.begin(), placed.parts.end(), [&](const model::GpuShare& part) {
    return seen.insert(part.uuid.text).second;
  });
}

}  // namespace

bool is_placement_annotation(std::string_view annotation) {
  return annotation == kPlacementAnnotation || annotation == kLegacyAllocation ||
         annotation.starts_with("ALIYUN_COM_GPU_MEM_") || annotation.starts_with("hami.io/vgpu-") ||
         annotation.starts_with("hami.io/bind-");
}

Status check_placement_shape(const PodRequest& ask, const Placement& placement) {
  for (const auto& placed : placement) {
    if (twice(placed))
      return Error(Errc::Corrupt,
                   fmt::format("{} names one GPU twice for container \"{}\"", kPlacementAnnotation,
                               printable(placed.container.substr(0, 64))));
  }
  for (const auto& asked : ask.containers) {
    const auto* placed = find(placement, asked.container);
    const auto parts = placed == nullptr ? 0 : placed->parts.size();
    if (parts != asked.gpus)
      return Error(Errc::Corrupt,
                   fmt::format("{} has {} GPUs for container \"{}\", which asks for "
                               "{}",
                               kPlacementAnnotation, parts,
                               printable(asked.container.substr(0, 64)), asked.gpus));
  }
  if (placement.size() != ask.containers.size())
    return Error(Errc::Corrupt, fmt::format("{} names containers that do not ask for a GPU",
                                            kPlacementAnnotation));
  return {};
}

Result<std::optional<Placement>> read_placement(const json::Value& pod, const PodRequest& ask,
                                                const std::vector<CardId>& cards,
                                                std::uint64_t unit_mib) {
  // Without a node, the annotation is not a placement: the Binding will overwrite it.
  if (pod["spec"]["nodeName"].string().value_or("").empty()) return std::optional<Placement>();
  GANTRY_TRY(const auto text, annotation(pod, kPlacementAnnotation));
  if (!text.empty()) {
    GANTRY_TRY(auto placement, parse_placement(text));
    GANTRY_CHECK(check_placement_shape(ask, placement));
    return std::optional<Placement>(std::move(placement));
  }
  GANTRY_TRY(auto legacy, ask.contract == Contract::Gpushare
                              ? gpushare_placement(pod, ask, cards, unit_mib)
                              : hami_placement(pod, ask, cards));
  if (legacy) GANTRY_CHECK(check_placement_shape(ask, *legacy));
  return legacy;
}

}  // namespace gantry::podspec
