// SPDX-License-Identifier: Apache-2.0
#include "base/core/nearest.hpp"
#include "gpu/mig/expand_internal.hpp"
#include "gpu/mig/place_search_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace gantry::mig {
namespace {

using ComputeList = std::vector<std::size_t>;  // in table.compute[profile], large ones first
using Division = std::vector<ComputeList>;     // one list for each GPU instance

Error no_profile(const ProfileTable& table, const ProfileName& name) {
  std::vector<std::string> names;
  for (const auto& profile : table.gpu.profiles) names.push_back(profile.name);
  const auto text = to_string(name);
  if (names.empty()) return {Errc::NotFound, "the GPU offers no MIG profiles"};
  const auto near = nearest_name(text, names);
  return {Errc::NotFound, fmt::format("{} has no profile {}{}; it has {}", table.gpu.name, text,
                                      near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                                      fmt::join(names, ", "))};
}

Result<std::size_t> find_profile(const ProfileTable& table, const ProfileName& name) {
  if (const auto found = table.find(name.gpu_instance())) return *found;
  return no_profile(table, name.gpu_instance());
}

Result<std::size_t> find_part(const ProfileTable& table, std::size_t profile, unsigned slices) {
  if (const auto found = table.find_compute(profile, slices)) return *found;
  std::vector<unsigned> sizes;
  for (const auto& part : table.compute[profile]) sizes.push_back(part.slices);
  return Error(Errc::NotFound,
               fmt::format("a compute instance of {} cannot have {}; it has {}",
                           table.gpu.profiles[profile].name, counted(slices, "slice"),
                           sizes.empty() ? "none" : fmt::format("{}", fmt::join(sizes, " or "))));
}

Status check_start(const ProfileTable& table, std::size_t profile, unsigned start) {
  std::vector<unsigned> starts;
  for (const auto& place : table.gpu.profiles[profile].places) starts.push_back(place.start);
  if (std::find(starts.begin(), starts.end(), start) != starts.end()) return {};
  return Error(Errc::Invalid,
               fmt::format("{} cannot begin at memory slice {}; it can begin at {}",
                           table.gpu.profiles[profile].name, start, fmt::join(starts, ", ")));
}

void sort_parts(const ProfileTable& table, std::size_t profile, ComputeList& parts) {
  const auto& all = table.compute[profile];
  std::sort(parts.begin(), parts.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(all[a].slices, b) > std::pair(all[b].slices, a);
  });
}

Result<ComputeList> read_parts(const ProfileTable& table, std::size_t profile,
                               const RequestedInstance& request) {
  ComputeList parts;
  auto slices = request.compute_slices;
  if (slices == std::vector<unsigned>{0}) return parts;
  if (slices.empty()) {
    const auto& name = request.profile;
    slices = {name.whole() ? table.gpu.profiles[profile].slices : name.compute_slices};
  }
  for (const auto number : slices) {
    GANTRY_TRY(const auto part, find_part(table, profile, number));
    parts.push_back(part);
  }
  sort_parts(table, profile, parts);
  if (!compute_fits(table, profile, parts)) {
    return Error(Errc::Invalid,
                 fmt::format("compute instances with {} slices do not fit into one {}",
                             fmt::join(slices, " + "), table.gpu.profiles[profile].name));
  }
  return parts;
}

// All ways to divide `parts` among GPU instances; those with few GPU instances come first.
class Divider {
 public:
  Divider(const ProfileTable& table, std::size_t profile, ComputeList parts)
      : table_(table), profile_(profile), parts_(std::move(parts)) {}

  std::vector<Division> divisions() {
    const auto most = std::min<std::size_t>(parts_.size(), table_.gpu.profiles[profile_].max);
    for (std::size_t size = 1; slices() <= most * table_.gpu.profiles[profile_].slices &&
                               size <= most && found_.size() < kMaxAlternatives;
         ++size) {
      division_.assign(size, {});
      add(0);
    }
    if (found_.empty()) return {first_fit()};
    return std::move(found_);
  }

 private:
  unsigned slices() const {
    unsigned sum = 0;
    for (const auto part : parts_) sum += table_.compute[profile_][part].slices;
    return sum;
  }

  // More GPU instances than the GPU has room for; the request will be refused.
  Division first_fit() const {
    Division division;
    for (const auto part : parts_) {
      auto at = std::find_if(division.begin(), division.end(), [&](ComputeList list) {
        list.push_back(part);
        return compute_fits(table_, profile_, list);
      });
      if (at == division.end()) at = division.insert(division.end(), ComputeList{});
      at->push_back(part);
    }
    return division;
  }

  void add(std::size_t next) {
    if (found_.size() >= kMaxAlternatives || ++steps_ > kMaxSearchSteps) return;
    if (next == parts_.size()) {
      if (std::none_of(division_.begin(), division_.end(), [](auto& l) { return l.empty(); }))
        remember();
      return;
    }
    for (std::size_t at = 0; at < division_.size(); ++at) {
      const bool tried =
          std::find(division_.begin(), division_.begin() + static_cast<std::ptrdiff_t>(at),
                    division_[at]) != division_.begin() + static_cast<std::ptrdiff_t>(at);
      if (tried) continue;  // an equal GPU instance
      division_[at].push_back(parts_[next]);
      if (compute_fits(table_, profile_, division_[at])) add(next + 1);
      division_[at].pop_back();
    }
  }

  void remember() {
    auto division = division_;
    std::sort(division.begin(), division.end(), std::greater<>());
    if (std::find(found_.begin(), found_.end(), division) == found_.end())
      found_.push_back(std::move(division));
  }

  const ProfileTable& table_;
  std::size_t profile_;
  ComputeList parts_;
  Division division_;
  std::vector<Division> found_;
  unsigned steps_ = 0;
};

// Adds every division to every alternative, those with few GPU instances first.
std::vector<InstanceKinds> combine(const std::vector<InstanceKinds>& alternatives,
                                   std::size_t profile, const std::vector<Division>& divisions) {
  std::vector<InstanceKinds> combined;
  for (const auto& division : divisions) {
    for (const auto& alternative : alternatives) {
      if (combined.size() >= kMaxAlternatives) break;
      auto kinds = alternative;
      for (const auto& parts : division)
        kinds.push_back({.profile = profile, .start = std::nullopt, .compute = parts});
      combined.push_back(std::move(kinds));
    }
  }
  std::stable_sort(combined.begin(), combined.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return combined;
}

// Several times the same compute instance, smaller than its GPU instance, without a place.
bool is_shared(const RequestedInstance& item) {
  return !item.profile.whole() && !item.start && item.compute_slices.empty();
}

}  // namespace

Result<std::vector<InstanceKinds>> expand(const ProfileTable& table, const LayoutRequest& request) {
  InstanceKinds kinds;
  std::map<std::size_t, ComputeList> shared;  // profile -> parts that share GPU instances
  for (const auto& item : request.instances) {
    GANTRY_TRY(const auto profile, find_profile(table, item.profile));
    if (item.start) GANTRY_CHECK(check_start(table, profile, *item.start));
    GANTRY_TRY(auto parts, read_parts(table, profile, item));
    if (is_shared(item)) {
      shared[profile].insert(shared[profile].end(), item.count, parts.front());
    } else {
      kinds.insert(kinds.end(), item.count,
                   {.profile = profile, .start = item.start, .compute = std::move(parts)});
    }
  }
  std::vector<InstanceKinds> alternatives{std::move(kinds)};
  for (auto& [profile, parts] : shared) {
    sort_parts(table, profile, parts);
    const auto divisions = Divider(table, profile, parts).divisions();
    alternatives = combine(alternatives, profile, divisions);
  }
  return alternatives;
}

std::vector<Placement> possible_places(const ProfileTable& table, const InstanceKind& kind) {
  std::vector<Placement> places;
  for (const auto& place : table.gpu.profiles[kind.profile].places) {
    if (!kind.start || place.start == *kind.start) places.push_back(place);
  }
  return places;
}

std::vector<KindGroup> group_kinds(InstanceKinds kinds) {
  std::sort(kinds.begin(), kinds.end());
  std::vector<KindGroup> groups;
  for (const auto& kind : kinds) {
    if (groups.empty() || groups.back().kind != kind) groups.push_back({kind, 0});
    ++groups.back().count;
  }
  return groups;
}

bool compute_fits(const ProfileTable& table, std::size_t profile, const ComputeList& compute) {
  std::map<std::size_t, unsigned> counts;
  for (const auto part : compute) ++counts[part];
  std::vector<PlaceGroup> groups;
  for (const auto& [part, count] : counts) {
    const auto& known = table.compute[profile][part];
    if (count > known.max) return false;
    auto& group = groups.emplace_back(PlaceGroup{.count = count, .options = {}});
    for (const auto& place : known.places) group.options.push_back({place, {}});
  }
  return have_places(groups);
}

LayoutRequest to_request(const ProfileTable& table, const InstanceKinds& kinds) {
  LayoutRequest request;
  for (const auto& kind : kinds) {
    RequestedInstance item{.profile = table.names[kind.profile], .start = kind.start};
    const auto& parts = table.compute[kind.profile];
    const auto whole = table.gpu.profiles[kind.profile].slices;
    for (const auto part : kind.compute) item.compute_slices.push_back(parts[part].slices);
    if (item.compute_slices.empty()) item.compute_slices = {0};
    if (item.compute_slices == std::vector<unsigned>{whole}) item.compute_slices.clear();
    if (item.compute_slices.size() == 1 && item.compute_slices[0] != 0) {
      item.profile.compute_slices = item.compute_slices[0];
      item.compute_slices.clear();
    }
    auto* last = request.instances.empty() ? nullptr : &request.instances.back();
    auto once = item;
    if (last != nullptr) once.count = last->count;
    if (last != nullptr && !item.start && once == *last)
      ++last->count;
    else
      request.instances.push_back(std::move(item));
  }
  return request;
}

}  // namespace gantry::mig
