// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"
#include "cluster/podspec/legacy_internal.hpp"
#include "cluster/podspec/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::podspec {
namespace {

const ContainerRequest* asked(const PodRequest& ask, std::string_view container) {
  const auto found =
      std::find_if(ask.containers.begin(), ask.containers.end(),
                   [&](const ContainerRequest& one) { return one.container == container; });
  return found == ask.containers.end() ? nullptr : &*found;
}

std::uint64_t units(std::uint64_t mib, const AnnotationInput& facts) {
  return mib / std::max<std::uint64_t>(facts.unit_mib, 1);
}

// {"0":{"3":8}}: only for spec.containers, as its readers count them.
std::string allocation_text(const PodRequest& ask, const Placement& placement,
                            const AnnotationInput& facts) {
  std::map<std::uint32_t, const ContainerPlacement*> by_position;
  for (const auto& placed : placement) {
    const auto* container = asked(ask, placed.container);
    if (container == nullptr || container->phase != model::ContainerPhase::Main) continue;
    by_position[container->position] = &placed;
  }
  json::Writer out;
  out.object([&] {
    for (const auto& [position, placed] : by_position) {
      out.object(fmt::to_string(position), [&, placed = placed] {
        for (const auto& part : placed->parts)
          out.member(fmt::to_string(part.index), units(part.mib, facts));
      });
    }
  });
  return std::move(out).text();
}

using Annotations = std::map<std::string, std::string>;

void add_gpushare(const PodRequest& ask, const Placement& placement, const AnnotationInput& facts,
                  Annotations& out) {
  std::map<std::uint32_t, model::GpuUuid> cards;  // by index
  for (const auto& placed : placement) {
    for (const auto& part : placed.parts) cards[part.index] = part.uuid;
  }
  std::string indices;
  for (const auto& [index, uuid] : cards)
    indices += fmt::format("{}{}", indices.empty() ? "" : ",", index);
  std::uint64_t taken = 0;
  for (const auto& charge : charges(ask, placement)) taken += charge.mib;
  const auto total =
      cards.empty() ? facts.card_mib.end() : facts.card_mib.find(cards.begin()->second);
  out.emplace(kLegacyIndex, indices);
  if (total != facts.card_mib.end())
    out.emplace(kLegacyCard, fmt::to_string(units(total->second, facts)));
  out.emplace(kLegacyPod, fmt::to_string(units(taken, facts)));
  out.emplace(kLegacyAssigned, "false");
  out.emplace(kLegacyTime, fmt::to_string(facts.unix_ns));
  const auto allocation = allocation_text(ask, placement, facts);
  if (allocation != "{}") out.emplace(kLegacyAllocation, allocation);
}

std::size_t hami_position(const PodRequest& ask, const ContainerRequest& container) {
  return container.position +
         (container.phase == model::ContainerPhase::Main ? ask.init_containers : 0);
}

std::string hami_text(const PodRequest& ask, const Placement& placement) {
  std::vector<std::string> containers(std::size_t{ask.init_containers} + ask.main_containers);
  for (const auto& placed : placement) {
    const auto* container = asked(ask, placed.container);
    if (container == nullptr || hami_position(ask, *container) >= containers.size()) continue;
    auto& text = containers[hami_position(ask, *container)];
    for (const auto& part : placed.parts)
      text += fmt::format("{},NVIDIA,{},{}:", part.uuid.text, part.mib, part.cores);
  }
  std::string text;
  for (const auto& container : containers) text += container + ";";
  return text;
}

void add_hami(const PodRequest& ask, const Placement& placement, const AnnotationInput& facts,
              Annotations& out) {
  const auto seconds = fmt::to_string(facts.unix_ns / 1'000'000'000);
  out.emplace(kHamiNode, facts.node);
  out.emplace(kHamiTime, seconds);
  out.emplace(kHamiBindTime, seconds);
  out.emplace(kHamiPhase, "success");
  out.emplace(kHamiAllocated, hami_text(ask, placement));
}

}  // namespace

std::map<std::string, std::string> annotations(const PodRequest& ask, const Placement& placement,
                                               const AnnotationInput& facts) {
  Annotations out;
  out.emplace(kPlacementAnnotation, to_json(placement));
  if (ask.contract == Contract::Gpushare) {
    add_gpushare(ask, placement, facts, out);
  } else {
    add_hami(ask, placement, facts, out);
  }
  return out;
}

}  // namespace gantry::podspec
