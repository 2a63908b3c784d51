// SPDX-License-Identifier: Apache-2.0
// Compares the solver with a search that knows nothing of it: every place of every instance, for
// every set of profiles of every known GPU, and for thousands of changes from one state to another.
#include "gpu/mig/known_models.hpp"
#include "gpu/mig/mig_gpu_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

namespace gantry::mig {
namespace {

constexpr unsigned kChangesPerModel = 1500;

// An instance at a place: profile, then start, then the compute instances in it.
struct Placed {
  std::size_t profile = 0;
  Placement place;
  std::vector<std::pair<std::string, Placement>> compute;
};

bool overlap(const Placement& a, const Placement& b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

bool ends_with_no_media(const std::string& name) {
  return name.ends_with("-me");
}

// The rules on numbers, written down a second time.
bool numbers_allow(const MigGpu& gpu, const std::vector<std::size_t>& profiles) {
  unsigned slices = 0;
  unsigned media = 0;
  unsigned without = 0;
  bool all = false;
  for (const auto profile : profiles) {
    const auto& row = gpu.profiles[profile];
    slices += row.slices;
    if (std::count(profiles.begin(), profiles.end(), profile) > row.max) return false;
    if (row.name.find("+me") != std::string::npos) ++media;
    if (row.name.find("+me.all") != std::string::npos) all = true;
    if (ends_with_no_media(row.name)) ++without;
  }
  if (media > 1 || (all && without + 1 < profiles.size())) return false;
  return slices <= (gpu.profiles.back().name[0] == '4' || gpu.profiles.size() != 7 ? 4U : 7U);
}

// Calls `visit` for every way to place the profiles, which are sorted; equal ones ascend.
void place_all(const MigGpu& gpu, const std::vector<std::size_t>& profiles,
               std::vector<Placed>& placed, const std::function<bool()>& visit, bool& stop) {
  if (stop) return;
  if (placed.size() == profiles.size()) {
    stop = visit();
    return;
  }
  const auto profile = profiles[placed.size()];
  for (const auto& place : gpu.profiles[profile].places) {
    const bool equal = !placed.empty() && placed.back().profile == profile;
    if (equal && place.start < placed.back().place.start) continue;
    if (std::any_of(placed.begin(), placed.end(),
                    [&](const Placed& other) { return overlap(other.place, place); }))
      continue;
    placed.push_back({profile, place, {}});
    place_all(gpu, profiles, placed, visit, stop);
    placed.pop_back();
    if (stop) return;
  }
}

void for_each_placement(const MigGpu& gpu, const std::vector<std::size_t>& profiles,
                        const std::function<bool(const std::vector<Placed>&)>& visit) {
  std::vector<Placed> placed;
  bool stop = false;
  place_all(
      gpu, profiles, placed, [&] { return visit(placed); }, stop);
}

bool fits(const MigGpu& gpu, const std::vector<std::size_t>& profiles) {
  if (!numbers_allow(gpu, profiles)) return false;
  bool found = false;
  for_each_placement(gpu, profiles, [&](const auto&) { return found = true; });
  return found;
}

// Every sorted list of up to `most` profiles.
std::vector<std::vector<std::size_t>> all_lists(std::size_t profiles, std::size_t most) {
  std::vector<std::vector<std::size_t>> lists{{}};
  for (std::size_t at = 0; at < lists.size(); ++at) {
    if (lists[at].size() == most) continue;
    const auto first = lists[at].empty() ? 0 : lists[at].back();
    for (std::size_t profile = first; profile < profiles; ++profile) {
      auto longer = lists[at];
      longer.push_back(profile);
      lists.push_back(std::move(longer));
    }
  }
  return lists;
}

unsigned slices_of(const MigGpu& gpu) {
  unsigned slices = 0;
  for (const auto& profile : gpu.profiles) slices = std::max(slices, profile.slices);
  return slices;
}

LayoutRequest request_for(const MigGpu& gpu, const std::vector<std::size_t>& profiles) {
  LayoutRequest request;
  for (const auto profile : profiles)
    request.instances.push_back({.profile = *parse_profile_name(gpu.profiles[profile].name)});
  return request;
}

// What the GPU has after the plan is what was asked, at places of the table, without overlap.
void check_result(const MigGpu& gpu, const LayoutPlan& plan,
                  const std::vector<std::size_t>& profiles) {
  const auto next = after(gpu, plan);
  std::vector<std::string> wanted;
  wanted.reserve(profiles.size());
  for (const auto profile : profiles) wanted.push_back(gpu.profiles[profile].name);
  std::vector<std::string> have;
  for (std::size_t i = 0; i < next.instances.size(); ++i) {
    const auto& instance = next.instances[i];
    have.push_back(instance.profile);
    const auto row = std::find_if(gpu.profiles.begin(), gpu.profiles.end(),
                                  [&](const auto& p) { return p.name == instance.profile; });
    ASSERT_NE(std::find(row->places.begin(), row->places.end(), instance.place), row->places.end());
    for (std::size_t j = 0; j < i; ++j)
      ASSERT_FALSE(overlap(instance.place, next.instances[j].place));
  }
  std::sort(wanted.begin(), wanted.end());
  std::sort(have.begin(), have.end());
  ASSERT_EQ(have, wanted);
}

class MigModel : public ::testing::TestWithParam<std::string> {};

TEST_P(MigModel, FitsExactlyWhatSomePlacementAllows) {
  const auto gpu = *known_gpu(GetParam());
  unsigned number = 0;
  for (const auto& profiles : all_lists(gpu.profiles.size(), slices_of(gpu))) {
    const auto request = request_for(gpu, profiles);
    const auto decision = solve_quickly(gpu, request);
    const auto* plan = std::get_if<LayoutPlan>(&decision);
    ASSERT_EQ(plan != nullptr, fits(gpu, profiles)) << to_words(request);
    if (plan != nullptr) check_result(gpu, *plan, profiles);
    if (plan != nullptr) ++number;
  }
  EXPECT_GT(number, 10U);
}

// Every third refusal: the nearest layout fits, and no layout that fits has more of the request.
TEST_P(MigModel, NoLayoutThatFitsIsNearer) {
  const auto gpu = *known_gpu(GetParam());
  const auto lists = all_lists(gpu.profiles.size(), slices_of(gpu));
  std::vector<std::vector<std::size_t>> fitting;
  for (const auto& profiles : lists) {
    if (fits(gpu, profiles)) fitting.push_back(profiles);
  }
  std::mt19937 random(1);
  for (unsigned i = 0; i < 60; ++i) {
    const auto& profiles = lists[random() % lists.size()];
    if (fits(gpu, profiles)) continue;
    const auto request = request_for(gpu, profiles);
    const auto nearest = nearest_layout(gpu, request);
    ASSERT_TRUE(nearest.has_value()) << to_words(request);
    ASSERT_TRUE(std::holds_alternative<LayoutPlan>(solve_quickly(gpu, *nearest)))
        << to_words(request) << " -> " << to_words(*nearest);
    std::vector<std::size_t> kept;
    for (const auto& item : nearest->instances) {
      for (std::size_t p = 0; p < gpu.profiles.size(); ++p) {
        if (gpu.profiles[p].name == to_string(item.profile)) kept.insert(kept.end(), item.count, p);
      }
    }
    std::sort(kept.begin(), kept.end());
    const auto unchanged = [&](const std::vector<std::size_t>& other) {
      std::vector<std::size_t> common;
      std::set_intersection(profiles.begin(), profiles.end(), other.begin(), other.end(),
                            std::back_inserter(common));
      return common.size();
    };
    for (const auto& other : fitting) {
      if (other.size() > profiles.size()) continue;
      // Only what is asked and dropped: a lower bound on what the nearest layout must reach.
      const bool part = std::includes(profiles.begin(), profiles.end(), other.begin(), other.end());
      if (!part) continue;
      ASSERT_LE(unchanged(other), unchanged(kept)) << to_words(*nearest);
    }
  }
}

// All divisions of a GPU instance that fit: lists of compute profiles with places.
using Divisions = std::vector<std::vector<std::pair<std::string, Placement>>>;
void divide(const GpuProfile& profile, Divisions& all,
            std::vector<std::pair<std::string, Placement>>& parts, std::size_t first) {
  all.push_back(parts);
  for (std::size_t i = first; i < profile.compute.size(); ++i) {
    for (const auto& place : profile.compute[i].places) {
      const bool equal = !parts.empty() && parts.back().first == profile.compute[i].name;
      if (equal && place.start < parts.back().second.start) continue;
      if (std::any_of(parts.begin(), parts.end(),
                      [&](const auto& part) { return overlap(part.second, place); }))
        continue;
      parts.emplace_back(profile.compute[i].name, place);
      divide(profile, all, parts, i);
      parts.pop_back();
    }
  }
}

std::vector<std::string> names_of(const std::vector<std::pair<std::string, Placement>>& parts) {
  std::vector<std::string> names;
  names.reserve(parts.size());
  for (const auto& [name, place] : parts) names.push_back(name);
  return names;
}

// A state, or a layout that is asked for: which instances, with which compute instances.
struct Divided {
  std::vector<std::size_t> profiles;
  std::vector<std::vector<std::pair<std::string, Placement>>> compute;
};

class Changes {
 public:
  explicit Changes(const std::string& model) : gpu_(*known_gpu(model)), random_(7) {
    for (auto& profiles : all_lists(gpu_.profiles.size(), slices_of(gpu_))) {
      if (!profiles.empty() && fits(gpu_, profiles)) fitting_.push_back(std::move(profiles));
    }
    for (const auto& profile : gpu_.profiles) {
      std::vector<std::pair<std::string, Placement>> parts;
      divide(profile, divisions_.emplace_back(), parts, 0);
    }
  }

  void check_one() {
    const auto state = random_state();
    const auto wanted = random_layout();
    std::vector<model::GpuUuid> held;
    for (const auto& instance : state.instances) {
      for (const auto& compute : instance.compute) {
        if (random_() % 6 == 0) held.push_back(compute.uuid);
      }
    }
    LayoutRequest request;
    for (std::size_t i = 0; i < wanted.profiles.size(); ++i)
      request.instances.push_back(item(wanted, i));
    const auto best = best_by_trying(state, wanted, held);
    const auto decision = solve_quickly(state, request, held);
    const auto text = fmt::format("{} to {}, {} held", to_words(current_layout(state)),
                                  to_words(request), held.size());
    if (best[0] < held.size()) {
      ASSERT_TRUE(std::holds_alternative<LayoutRefusal>(decision)) << text;
      ++refused;
      return;
    }
    const auto* plan = std::get_if<LayoutPlan>(&decision);
    ASSERT_NE(plan, nullptr) << text << ": " << std::get<LayoutRefusal>(decision).reason;
    unsigned kept = 0;
    for (const auto& instance : plan->keep) kept += static_cast<unsigned>(instance.keep.size());
    ASSERT_EQ(kept, best[1]) << text;
    ASSERT_EQ(plan->keep.size(), best[2]) << text;
    check_result(state, *plan, wanted.profiles);
    check_untouched(state, *plan, held);
    ++planned;
  }

  unsigned planned = 0;
  unsigned refused = 0;

 private:
  Divided random_layout() {
    Divided layout;
    layout.profiles = fitting_[random_() % fitting_.size()];
    for (const auto profile : layout.profiles) {
      const auto& all = divisions_[profile];
      const bool whole = random_() % 2 == 0;
      const auto& last = gpu_.profiles[profile].compute.back();
      layout.compute.push_back(whole ? Divisions::value_type{{last.name, last.places[0]}}
                                     : all[random_() % all.size()]);
    }
    return layout;
  }

  MigGpu random_state() {
    const auto layout = random_layout();
    std::vector<std::vector<Placed>> states;
    for_each_placement(gpu_, layout.profiles, [&](const auto& placed) {
      states.push_back(placed);
      return false;
    });
    const auto& placed = states[random_() % states.size()];
    auto gpu = gpu_;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (random_() % 4 == 0) continue;  // a free place
      auto& instance = gpu.instances.emplace_back();
      instance.profile = gpu.profiles[placed[i].profile].name;
      instance.place = placed[i].place;
      for (const auto& [name, place] : layout.compute[i])
        instance.compute.push_back({.profile = name, .place = place, .uuid = {}});
    }
    name_instances_for_test(gpu);
    return gpu;
  }

  RequestedInstance item(const Divided& layout, std::size_t i) const {
    RequestedInstance request{.profile =
                                  *parse_profile_name(gpu_.profiles[layout.profiles[i]].name)};
    for (const auto& [name, place] : layout.compute[i])
      request.compute_slices.push_back(parse_profile_name(name)->compute_slices);
    if (request.compute_slices.empty()) request.compute_slices = {0};
    return request;
  }

  // Held compute instances, compute instances, GPU instances that can stay.
  using Kept = std::array<unsigned, 3>;

  Kept kept_in(const GpuInstance& present, std::size_t profile,
               const std::vector<std::string>& parts,
               const std::vector<model::GpuUuid>& held) const {
    Kept best{0, 0, 1};
    for (const auto& division : divisions_[profile]) {
      if (names_of(division) != parts) continue;
      Kept kept{0, 0, 1};
      for (const auto& old : present.compute) {
        if (std::find(division.begin(), division.end(), std::pair(old.profile, old.place)) ==
            division.end())
          continue;
        ++kept[1];
        if (std::find(held.begin(), held.end(), old.uuid) != held.end()) ++kept[0];
      }
      best = std::max(best, kept);
    }
    return best;
  }

  // Every order of the instances at every set of places.
  Kept best_by_trying(const MigGpu& state, const Divided& wanted,
                      const std::vector<model::GpuUuid>& held) const {
    Kept best{};
    std::vector<std::size_t> order(wanted.profiles.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<bool> used(order.size());
    for_each_placement(gpu_, wanted.profiles, [&](const std::vector<Placed>& placed) {
      best = std::max(best, assign(state, wanted, held, placed, used, 0));
      return false;
    });
    return best;
  }

  Kept assign(const MigGpu& state, const Divided& wanted, const std::vector<model::GpuUuid>& held,
              const std::vector<Placed>& placed, std::vector<bool>& used, std::size_t at) const {
    if (at == placed.size()) return {};
    Kept best{};
    std::vector<std::vector<std::string>> tried;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (used[i] || wanted.profiles[i] != placed[at].profile) continue;
      const auto parts = names_of(wanted.compute[i]);
      if (std::find(tried.begin(), tried.end(), parts) != tried.end()) continue;
      tried.push_back(parts);
      used[i] = true;
      auto kept = assign(state, wanted, held, placed, used, at + 1);
      used[i] = false;
      for (const auto& present : state.instances) {
        if (present.place != placed[at].place ||
            present.profile != gpu_.profiles[placed[at].profile].name)
          continue;
        const auto here = kept_in(present, placed[at].profile, parts, held);
        for (std::size_t k = 0; k < kept.size(); ++k) kept[k] += here[k];
      }
      best = std::max(best, kept);
    }
    return best;
  }

  // What is kept is exactly what was there, and nothing held is destroyed.
  static void check_untouched(const MigGpu& state, const LayoutPlan& plan,
                              const std::vector<model::GpuUuid>& held) {
    const auto is_held = [&](const ComputeInstance& instance) {
      return std::find(held.begin(), held.end(), instance.uuid) != held.end();
    };
    for (const auto& instance : plan.destroy)
      ASSERT_TRUE(std::none_of(instance.compute.begin(), instance.compute.end(), is_held));
    for (const auto& instance : plan.keep) {
      ASSERT_TRUE(std::none_of(instance.destroy.begin(), instance.destroy.end(), is_held));
      const auto old = std::find_if(state.instances.begin(), state.instances.end(),
                                    [&](const auto& other) { return other.id == instance.id; });
      ASSERT_NE(old, state.instances.end());
      ASSERT_EQ(old->place, instance.place);
      for (const auto& compute : instance.keep)
        ASSERT_NE(std::find(old->compute.begin(), old->compute.end(), compute), old->compute.end());
    }
    ASSERT_EQ(plan.keep.size() + plan.destroy.size(), state.instances.size());
  }

  MigGpu gpu_;
  std::mt19937 random_;
  std::vector<std::vector<std::size_t>> fitting_;
  std::vector<Divisions> divisions_;
};

TEST_P(MigModel, KeepsAsManyInstancesAsPossible) {
  Changes changes(GetParam());
  for (unsigned i = 0; i < kChangesPerModel; ++i) {
    changes.check_one();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(changes.planned, kChangesPerModel / 4);
  EXPECT_GT(changes.refused, 10U);
}

INSTANTIATE_TEST_SUITE_P(Known, MigModel,
                         ::testing::Values("A100-40GB", "A100-80GB", "H200", "B200", "A30",
                                           "RTX-PRO-6000"),
                         [](const auto& test) {
                           auto name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace gantry::mig
