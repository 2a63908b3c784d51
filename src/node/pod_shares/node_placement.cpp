// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/node_placement.hpp"

#include "base/core/printable.hpp"
#include "cluster/placement/cluster.hpp"
#include "gpu/ownership/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace gantry::pod_shares {
namespace {

constexpr std::uint32_t kAlone = 100;  // cores: no other pod on the card

void add(const grants::GrantFile& written, PlacedPod& pod) {
  const auto& share = *written.grant.share;
  podspec::ContainerRequest container{.container = written.container,
                                      .phase = share.phase,
                                      .position = share.position,
                                      .gpus = static_cast<std::uint32_t>(share.parts.size())};
  if (!share.parts.empty()) {
    container.memory = {podspec::Amount::Kind::MiB, share.parts.front().mib};
    container.cores = share.parts.front().cores;
  }
  pod.ask.containers.push_back(std::move(container));
  pod.placement.push_back({.container = written.container, .parts = share.parts});
}

const podspec::CardInfo* card_of(const podspec::NodeInfo& node, const model::GpuUuid& uuid) {
  const auto found = std::find_if(node.cards.begin(), node.cards.end(),
                                  [&](const podspec::CardInfo& card) { return card.uuid == uuid; });
  return found == node.cards.end() ? nullptr : &*found;
}

Status check_part(const podspec::ContainerRequest& asked, const model::GpuShare& part,
                  const podspec::NodeInfo& node) {
  const auto* card = card_of(node, part.uuid);
  if (card == nullptr) {
    return Error(Errc::Denied,
                 fmt::format("the pod was placed on GPU {} ({}), which is not shared on this node; "
                             "delete the pod, and the scheduler places its replacement",
                             part.index, printable(part.uuid.text.substr(0, 64))));
  }
  const auto wanted = asked.memory.on(card->mib, node.unit_mib);
  if (part.mib != wanted || part.cores != asked.cores) {
    return Error(
        Errc::Denied,
        fmt::format(
            "its placement says {} MiB and {} % of GPU {}, but its limits say {} MiB and {} %: one "
            "of them was changed. Delete the pod, and the scheduler places its replacement",
            part.mib, part.cores, card->index, wanted, asked.cores));
  }
  if (card->healthy) return {};
  return Error(
      Errc::Busy,
      fmt::format("the pod was placed on GPU {} ({}), which is unhealthy now; `gantry doctor` says "
                  "why. The container starts when the GPU is healthy again; to use another GPU, "
                  "delete the pod, and the scheduler places its replacement",
                  card->index, card->uuid.text));
}

std::string other_tenants(const placement::CardView& card, std::string_view but_uid) {
  std::vector<std::string> names;
  for (const auto& tenant : card.tenants) {
    if (tenant.pod.uid == but_uid) continue;
    names.push_back(tenant.pod.name.empty() ? tenant.pod.uid : to_string(tenant.pod));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::uint64_t less(std::uint64_t from, std::uint64_t what) {
  return from - std::min(from, what);
}

// The rest of a card's charge after these grants.
podspec::Charge left_beside(podspec::Charge charge, std::span<const model::GrantShare> others) {
  for (const auto& other : others) {
    for (const auto& part : other.parts) {
      if (part.uuid != charge.uuid) continue;
      charge.mib = less(charge.mib, part.mib);
      charge.cores = static_cast<std::uint32_t>(less(charge.cores, part.cores));
    }
  }
  return charge;
}

// Replaces the pod's placement with the grants that its containers have.
void give(PlacedPod& pod, const PlacedPod& given) {
  for (const auto& placed : given.placement) {
    const auto known =
        std::find_if(pod.placement.begin(), pod.placement.end(),
                     [&](const auto& one) { return one.container == placed.container; });
    if (known == pod.placement.end()) {
      pod.placement.push_back(placed);
    } else {
      *known = placed;
    }
  }
}

ownership::Holding holding_of(const placement::Tenant& tenant) {
  return {.holder = tenant.pod.uid,
          .mode = model::AllocationMode::Shares,
          .memory_bytes = tenant.mib << 20U,
          .percent = tenant.cores,
          .alone = tenant.cores >= kAlone};
}

// The view has the pod itself among its tenants.
Status check_card(const placement::CardView& card, const podspec::PodRequest& ask) {
  std::vector<ownership::Holding> others;
  ownership::HoldingRequest wanted{.holding = {.mode = model::AllocationMode::Shares}};
  for (const auto& tenant : card.tenants) {
    if (tenant.pod.uid == ask.pod.uid) {
      wanted.holding = holding_of(tenant);
    } else {
      others.push_back(holding_of(tenant));
    }
  }
  const auto refusals =
      ownership::fits({.use = model::AllocationMode::Shares, .memory_bytes = card.facts.mib << 20U},
                      others, wanted);
  if (refusals.empty()) return {};
  const auto refuse = [&](std::string_view what) {
    return Error(Errc::Busy, fmt::format("GPU {} has no room for it yet: {}, because {} still run "
                                         "on it. The container starts when they have ended",
                                         card.facts.index, what, other_tenants(card, ask.pod.uid)));
  };
  switch (refusals.front().reason) {
    case ownership::CardRefusal::Reason::Held: return refuse("one of the pods needs the GPU alone");
    case ownership::CardRefusal::Reason::Time:
      return refuse(fmt::format("{} % of its time would be allocated", card.used_cores));
    default:
      return refuse(fmt::format("{} of {} MiB would be allocated", card.used_mib, card.facts.mib));
  }
}

bool uses(const podspec::Placement& placement, const model::GpuUuid& uuid) {
  return std::any_of(placement.begin(), placement.end(), [&](const auto& container) {
    return std::any_of(container.parts.begin(), container.parts.end(),
                       [&](const model::GpuShare& part) { return part.uuid == uuid; });
  });
}

}  // namespace

const podspec::ContainerPlacement* find(const podspec::Placement& placement,
                                        std::string_view container) {
  const auto found = std::find_if(placement.begin(), placement.end(), [&](const auto& placed) {
    return placed.container == container;
  });
  return found == placement.end() ? nullptr : &*found;
}

const podspec::ContainerRequest* find(const podspec::PodRequest& ask, std::string_view container) {
  const auto found = std::find_if(ask.containers.begin(), ask.containers.end(),
                                  [&](const auto& asked) { return asked.container == container; });
  return found == ask.containers.end() ? nullptr : &*found;
}

std::vector<PlacedPod> granted_pods(std::span<const grants::GrantFile> granted) {
  std::map<std::string, PlacedPod> pods;
  for (const auto& written : granted) {
    if (!written.grant.share) continue;
    auto& pod = pods[written.grant.pod.uid];
    pod.ask.pod = written.grant.pod;
    add(written, pod);
  }
  std::vector<PlacedPod> all;
  for (auto& [uid, pod] : pods) {
    // The order matters for sidecars: they count from their start on.
    std::stable_sort(
        pod.ask.containers.begin(), pod.ask.containers.end(), [](const auto& a, const auto& b) {
          const auto rank = [](const podspec::ContainerRequest& container) {
            return std::pair(container.phase == model::ContainerPhase::Main, container.position);
          };
          return rank(a) < rank(b);
        });
    all.push_back(std::move(pod));
  }
  return all;
}

Status check_placement(const podspec::PodRequest& ask, const podspec::Placement& placement,
                       const podspec::NodeInfo& node) {
  GANTRY_CHECK(podspec::check_placement_shape(ask, placement));
  for (const auto& asked : ask.containers) {
    const auto* placed = find(placement, asked.container);
    std::set<model::GpuUuid> cards;
    for (const auto& part : placed->parts) {
      GANTRY_CHECK(check_part(asked, part, node)
                       .in(fmt::format("container {}", printable(asked.container))));
      if (!cards.insert(part.uuid).second)
        return Error(Errc::Denied, fmt::format("{} names GPU {} twice for one container",
                                               podspec::kPlacementAnnotation, part.index));
    }
  }
  return {};
}

Status check_room(const podspec::PodRequest& ask, const podspec::Placement& placement,
                  const podspec::NodeInfo& node, std::span<const grants::GrantFile> granted) {
  placement::Cluster cluster;
  cluster.set_node(node);
  for (const auto& pod : granted_pods(granted)) {
    if (pod.ask.pod.uid != ask.pod.uid) cluster.set_pod(pod.ask, node.name, &pod.placement);
  }
  cluster.set_pod(ask, node.name, &placement);
  const auto view = cluster.view(node.name);
  for (const auto& card : view.cards) {
    if (uses(placement, card.facts.uuid)) GANTRY_CHECK(check_card(card, ask));
  }
  return {};
}

Result<podspec::Placement> place_on_this_node(const podspec::PodRequest& ask,
                                              const podspec::NodeInfo& node,
                                              std::span<const PlacedPod> placed_pods,
                                              std::span<const grants::GrantFile> granted) {
  placement::Cluster cluster;
  cluster.set_node(node);
  std::map<std::string, PlacedPod> pods;
  for (const auto& pod : placed_pods) {
    if (pod.ask.pod.uid != ask.pod.uid) pods.emplace(pod.ask.pod.uid, pod);
  }
  podspec::Placement fixed;
  for (const auto& pod : granted_pods(granted)) {
    const auto [known, is_new] = pods.emplace(pod.ask.pod.uid, pod);
    if (!is_new) give(known->second, pod);  // a grant is more reliable than a placement
    if (pod.ask.pod.uid == ask.pod.uid) fixed = pod.placement;
  }
  for (const auto& [uid, pod] : pods) cluster.set_pod(pod.ask, node.name, &pod.placement);
  auto rest = ask;
  if (!fixed.empty()) rest.pod.uid += "/rest";  // in addition to what the pod has
  std::erase_if(rest.containers, [&](const podspec::ContainerRequest& container) {
    return find(fixed, container.container) != nullptr;
  });
  podspec::Placement chosen;
  if (!rest.containers.empty()) {
    GANTRY_TRY(chosen, cluster.reserve(rest, node.name));
  }
  podspec::Placement placement;
  for (const auto& asked : ask.containers) {
    const auto* placed = find(fixed, asked.container);
    if (placed == nullptr) placed = find(chosen, asked.container);
    if (placed != nullptr) placement.push_back(*placed);
  }
  return placement;
}

std::vector<model::GpuShare> merge_containers(
    std::span<const podspec::ContainerPlacement> containers) {
  if (containers.empty()) return {};
  auto parts = containers.back().parts;
  for (const auto& other : containers) {
    const bool same = std::equal(parts.begin(), parts.end(), other.parts.begin(), other.parts.end(),
                                 [](const auto& a, const auto& b) { return a.uuid == b.uuid; });
    if (!same) continue;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool free = parts[i].cores == 0 || other.parts[i].cores == 0;
      parts[i].mib = std::max(parts[i].mib, other.parts[i].mib);
      parts[i].cores = free ? 0 : std::max(parts[i].cores, other.parts[i].cores);
    }
  }
  return parts;
}

std::vector<model::GpuShare> limit_to_charge(std::vector<model::GpuShare> parts,
                                             const podspec::ContainerPlacement& stays,
                                             std::span<const podspec::Charge> charged,
                                             std::span<const model::GrantShare> others) {
  if (parts.empty() || parts.size() != stays.parts.size()) return parts;
  // A share has the same amount on each card. If the amounts are a percentage of different cards,
  // keep those of the last container.
  const auto& first = parts.front();
  if (std::any_of(parts.begin(), parts.end(), [&](const auto& p) { return p.mib != first.mib; }))
    return parts;
  auto mib = first.mib;
  auto cores = first.cores;
  for (const auto& charge : charged) {
    const bool used = std::any_of(parts.begin(), parts.end(),
                                  [&](const auto& part) { return part.uuid == charge.uuid; });
    if (!used) continue;
    const auto left = left_beside(charge, others);
    mib = std::min(mib, left.mib);
    cores = std::min(cores, left.cores);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].mib = std::max(mib, stays.parts[i].mib);
    if (parts[i].cores > 0) parts[i].cores = std::max(cores, stays.parts[i].cores);
  }
  return parts;
}

}  // namespace gantry::pod_shares
