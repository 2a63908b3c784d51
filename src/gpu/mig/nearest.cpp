// SPDX-License-Identifier: Apache-2.0
// Looks at every set of instances that follows the rules and has places: a few hundred on each
// GPU there is.
#include "gpu/mig/expand_internal.hpp"
#include "gpu/mig/place_search_internal.hpp"
#include "gpu/mig/solve.hpp"

#include <algorithm>

namespace gantry::mig {
namespace {

// How far a layout is from the request; less is better, member by member.
struct Distance {
  std::size_t changed = 0;  // dropped or replaced
  std::size_t dropped = 0;
  unsigned missing_compute = 0;                       // slices
  unsigned missing_memory = 0;                        // slices
  std::vector<bool> changed_positions;                // of the request, in its order
  auto operator<=>(const Distance&) const = default;  // NOLINT(modernize-use-nullptr)
};

class NearestSearch {
 public:
  NearestSearch(const ProfileTable& table, const InstanceKinds& requested)
      : table_(table), requested_(requested) {
    for (const auto& kind : requested) add_candidate(kind);
    for (auto kind : requested) {
      kind.start = std::nullopt;
      add_candidate(kind);
    }
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      const auto whole = table.find_compute(i, table.gpu.profiles[i].slices);
      if (whole) add_candidate({.profile = i, .start = std::nullopt, .compute = {*whole}});
    }
  }

  std::optional<InstanceKinds> run() {
    fill(0);
    return best_;
  }

 private:
  void add_candidate(const InstanceKind& kind) {
    const bool known = std::find(candidates_.begin(), candidates_.end(), kind) != candidates_.end();
    const bool useful = std::any_of(requested_.begin(), requested_.end(), [&](const auto& asked) {
      return kind == asked || replaces(kind, asked);
    });
    if (!known && useful) candidates_.push_back(kind);
  }

  bool subset(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    return std::includes(b.begin(), b.end(), a.begin(), a.end());
  }

  // Whether `kind` can stand for what was asked: not larger, and no other attributes.
  bool replaces(const InstanceKind& kind, const InstanceKind& asked) const {
    const auto& name = table_.names[kind.profile];
    const auto& asked_name = table_.names[asked.profile];
    return kind.start == std::nullopt && table_.size(kind.profile) <= table_.size(asked.profile) &&
           compute(kind) <= compute(asked) && subset(name.with, asked_name.with) &&
           subset(name.without, asked_name.without);
  }

  unsigned compute(const InstanceKind& kind) const {
    return table_.gpu.profiles[kind.profile].slices;
  }

  void fill(std::size_t candidate) {
    if (++steps_ > kMaxSearchSteps || !follows_rules(table_, count_profiles(table_, kinds_)))
      return;
    if (candidate == candidates_.size()) {
      compare();
      return;
    }
    const auto before = kinds_.size();
    for (;;) {
      fill(candidate + 1);
      if (kinds_.size() >= requested_.size()) break;
      kinds_.push_back(candidates_[candidate]);
      if (!follows_rules(table_, count_profiles(table_, kinds_))) break;
    }
    kinds_.resize(before);
  }

  void compare() {
    if (kinds_.empty()) return;
    auto distance = distance_of();
    if (!distance || (best_ && *distance >= best_distance_)) return;
    if (!placeable()) return;
    best_ = in_order();
    best_distance_ = *std::move(distance);
  }

  // nullopt if one of the instances stands for none that was asked.
  std::optional<Distance> distance_of() {
    std::vector<bool> left(kinds_.size(), true);
    Distance distance{.changed_positions = std::vector<bool>(requested_.size(), true)};
    stand_in_.assign(requested_.size(), std::nullopt);
    for (std::size_t asked = 0; asked < requested_.size(); ++asked) {
      for (std::size_t i = 0; i < kinds_.size(); ++i) {
        if (!left[i] || kinds_[i] != requested_[asked]) continue;
        left[i] = false;
        distance.changed_positions[asked] = false;
        stand_in_[asked] = i;
        break;
      }
    }
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      std::vector<bool> seen(requested_.size());
      if (left[i] && !assign(i, distance.changed_positions, seen)) return std::nullopt;
    }
    distance.changed = static_cast<std::size_t>(
        std::count(distance.changed_positions.begin(), distance.changed_positions.end(), true));
    distance.dropped = requested_.size() - kinds_.size();
    for (const auto& kind : requested_) {
      distance.missing_compute += compute(kind);
      distance.missing_memory += table_.size(kind.profile);
    }
    for (const auto& kind : kinds_) {
      distance.missing_compute -= compute(kind);
      distance.missing_memory -= table_.size(kind.profile);
    }
    return distance;
  }

  // Gives instance `i` a changed position of the request, and moves others where that helps.
  bool assign(std::size_t i, const std::vector<bool>& changed, std::vector<bool>& seen) {
    for (std::size_t asked = 0; asked < requested_.size(); ++asked) {
      if (!changed[asked] || seen[asked] || !replaces(kinds_[i], requested_[asked])) continue;
      seen[asked] = true;
      if (stand_in_[asked] && !assign(*stand_in_[asked], changed, seen)) continue;
      stand_in_[asked] = i;
      return true;
    }
    return false;
  }

  bool placeable() const {
    std::vector<PlaceGroup> groups;
    for (const auto& [kind, count] : group_kinds(kinds_)) {
      auto& group = groups.emplace_back(PlaceGroup{.count = count, .options = {}});
      for (const auto& place : possible_places(table_, kind)) group.options.push_back({place, {}});
    }
    return have_places(groups);
  }

  // As in the request, each replacement where the replaced one was.
  InstanceKinds in_order() const {
    InstanceKinds ordered;
    for (const auto& i : stand_in_) {
      if (i) ordered.push_back(kinds_[*i]);
    }
    return ordered;
  }

  const ProfileTable& table_;
  const InstanceKinds& requested_;
  InstanceKinds candidates_;
  InstanceKinds kinds_;
  std::vector<std::optional<std::size_t>> stand_in_;  // for each position: which of kinds_
  std::optional<InstanceKinds> best_;
  Distance best_distance_;
  unsigned steps_ = 0;
};

// Places that do not exist are forgotten, so that there is something to be near to.
LayoutRequest without_places(LayoutRequest request) {
  for (auto& item : request.instances) item.start.reset();
  return request;
}

}  // namespace

std::optional<LayoutRequest> nearest_layout(const MigGpu& gpu, const LayoutRequest& request) {
  if (!request.enabled || gpu.current == model::MigMode::Unsupported) return std::nullopt;
  const ProfileTable table(gpu);
  auto alternatives = expand(table, request);
  if (!alternatives.ok()) alternatives = expand(table, without_places(request));
  if (!alternatives.ok()) return std::nullopt;
  const auto found = NearestSearch(table, alternatives->front()).run();
  if (!found) return std::nullopt;
  return to_request(table, *found);
}

}  // namespace gantry::mig
