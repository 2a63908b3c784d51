// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "cluster/podspec/affinity_internal.hpp"
#include "cluster/podspec/legacy_internal.hpp"
#include "cluster/podspec/limits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::podspec {
namespace {

Error unknown_gpus(std::string_view key, std::string_view value) {
  return {Errc::Corrupt, fmt::format("annotation {}: \"{}\" does not name GPUs of this node", key,
                                     printable(value.substr(0, 64)))};
}

const CardId* card_at(const std::vector<CardId>& cards, std::optional<std::uint64_t> index) {
  const auto found = std::find_if(cards.begin(), cards.end(),
                                  [&](const CardId& card) { return index == card.index; });
  return found == cards.end() ? nullptr : &*found;
}

// "0", or "0,2" if the pod has several GPUs: every container's memory is on each of them.
Result<Placement> by_index(const std::string& text, const PodRequest& ask,
                           const std::vector<CardId>& cards, std::uint64_t unit_mib) {
  std::vector<CardId> used;
  for (const auto piece : split(text, ',')) {
    const auto* card = card_at(cards, parse_u64(trim(piece)));
    if (card == nullptr) return unknown_gpus(kLegacyIndex, text);
    used.push_back(*card);
  }
  Placement placement;
  for (const auto& asked : ask.containers) {
    placement.push_back({asked.container, {}});
    for (const auto& card : used)
      placement.back().parts.push_back(
          {card.uuid, card.index, asked.memory.on(0, unit_mib), asked.cores});
  }
  return placement;
}

// {"0":{"3":8}}. It does not contain init containers: they run on the GPUs of the first container.
Result<Placement> by_allocation(const json::Value& root, const std::string& text,
                                const PodRequest& ask, const std::vector<CardId>& cards,
                                std::uint64_t unit_mib) {
  Placement placement;
  for (const auto& asked : ask.containers) {
    const bool named = asked.phase == model::ContainerPhase::Main;
    const auto gpus = named ? root[fmt::to_string(asked.position)] : (*root.begin());
    placement.push_back({asked.container, {}});
    for (const auto gpu : gpus) {
      const auto* card = card_at(cards, parse_u64(gpu.key()));
      const auto units = gpu.u64();
      if (card == nullptr || !units || *units > kMaxMemoryUnits)
        return unknown_gpus(kLegacyAllocation, text);
      const Amount amount{Amount::Kind::Units, named ? *units : asked.memory.value};
      placement.back().parts.push_back(
          {card->uuid, card->index, amount.on(0, unit_mib), asked.cores});
    }
  }
  return placement;
}

// "UUID,TYPE,MiB,cores"
Result<model::GpuShare> hami_part(std::string_view text, const std::vector<CardId>& cards) {
  const auto fields = split(text, ',');
  if (fields.size() != 4) return unknown_gpus(kHamiAllocated, text);
  const auto mib = parse_u64(fields[2]);
  const auto cores = parse_u64(fields[3]);
  if (!mib || *mib > kMaxMemoryMib || !cores || *cores > 100)
    return unknown_gpus(kHamiAllocated, text);
  const auto uuid = fields[0].substr(0, fields[0].find('['));  // followed by a MIG instance
  if (uuid.empty() || uuid.size() > kMaxNameBytes) return unknown_gpus(kHamiAllocated, text);
  const auto card = std::find_if(cards.begin(), cards.end(),
                                 [&](const CardId& known) { return known.uuid.text == uuid; });
  return model::GpuShare{{std::string(uuid)},
                         card == cards.end() ? 0 : card->index,
                         *mib,
                         static_cast<std::uint32_t>(*cores)};
}

Result<ContainerPlacement> hami_container(const std::string& name, std::string_view text,
                                          const std::vector<CardId>& cards) {
  ContainerPlacement placed{name, {}};
  for (const auto piece : split(text, ':')) {
    if (piece.empty()) continue;
    if (placed.parts.size() == kMaxGpusPerContainer) return unknown_gpus(kHamiAllocated, text);
    GANTRY_TRY(auto part, hami_part(piece, cards));
    placed.parts.push_back(std::move(part));
  }
  return placed;
}

}  // namespace

Result<std::optional<Placement>> gpushare_placement(const json::Value& pod, const PodRequest& ask,
                                                    const std::vector<CardId>& cards,
                                                    std::uint64_t unit_mib) {
  GANTRY_TRY(const auto allocation, annotation(pod, kLegacyAllocation));
  if (!allocation.empty()) {
    if (allocation.size() > kMaxAnnotationBytes) return unknown_gpus(kLegacyAllocation, allocation);
    GANTRY_TRY(const auto document, json::Document::parse(allocation).in(kLegacyAllocation));
    if (!document.root().is(json::Kind::Object) || document.root().size() == 0)
      return unknown_gpus(kLegacyAllocation, allocation);
    GANTRY_TRY(auto placement, by_allocation(document.root(), allocation, ask, cards, unit_mib));
    return std::optional<Placement>(std::move(placement));
  }
  GANTRY_TRY(const auto index, annotation(pod, kLegacyIndex));
  if (index.empty()) return std::optional<Placement>();
  if (split(index, ',').size() > kMaxGpusPerContainer) return unknown_gpus(kLegacyIndex, index);
  GANTRY_TRY(auto placement, by_index(index, ask, cards, unit_mib));
  return std::optional<Placement>(std::move(placement));
}

Result<std::optional<Placement>> hami_placement(const json::Value& pod, const PodRequest& ask,
                                                const std::vector<CardId>& cards) {
  GANTRY_TRY(const auto text, annotation(pod, kHamiAllocated));
  if (text.empty()) return std::optional<Placement>();
  auto entries = split(text, ';');
  if (!entries.empty() && entries.back().empty()) entries.pop_back();
  // Older versions list only the containers, without init containers.
  const std::size_t all = std::size_t{ask.init_containers} + ask.main_containers;
  const bool with_init = entries.size() == all;
  if (!with_init && entries.size() != ask.main_containers)
    return unknown_gpus(kHamiAllocated, text);
  Placement placement;
  for (const auto& asked : ask.containers) {
    const bool main = asked.phase == model::ContainerPhase::Main;
    if (!main && !with_init) continue;
    const std::size_t at = asked.position + (main && with_init ? ask.init_containers : 0);
    GANTRY_TRY(auto placed, hami_container(asked.container, entries[at], cards));
    placement.push_back(std::move(placed));
  }
  return std::optional<Placement>(std::move(placement));
}

}  // namespace gantry::podspec
