// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/solve.hpp"

#include "gpu/mig/expand_internal.hpp"
#include "gpu/mig/place_search_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::mig {
namespace {

using Held = std::span<const model::GpuUuid>;

bool is_held(const ComputeInstance& instance, Held held) {
  return !instance.uuid.text.empty() &&
         std::find(held.begin(), held.end(), instance.uuid) != held.end();
}

std::vector<ComputeInstance> held_of(const std::vector<ComputeInstance>& instances, Held held) {
  std::vector<ComputeInstance> found;
  for (const auto& instance : instances) {
    if (is_held(instance, held)) found.push_back(instance);
  }
  return found;
}

bool has_profile(const ProfileName& name, const std::string& text) {
  const auto parsed = parse_profile_name(text);
  return parsed.ok() && *parsed == name;
}

// The compute instances of one GPU instance with their places, and what stays if `present` is
// there.
struct ComputeChoice {
  std::vector<ComputeCreation> wanted;  // kept ones too
  Gain gain;
};

Gain compute_gain(const ComputeProfile& profile, const Placement& place, const GpuInstance* present,
                  Held held) {
  const auto name = parse_profile_name(profile.name);
  if (present == nullptr || !name.ok()) return {};
  for (const auto& old : present->compute) {
    if (old.place == place && has_profile(*name, old.profile))
      return {is_held(old, held) ? 1U : 0U, 1, 0};
  }
  return {};
}

ComputeChoice choose_compute(const ProfileTable& table, const InstanceKind& kind,
                             const GpuInstance* present, Held held) {
  std::vector<PlaceGroup> groups;
  std::vector<const ComputeProfile*> profiles;
  for (const auto part : kind.compute) {  // equal ones follow each other
    const auto& profile = table.compute[kind.profile][part];
    if (!profiles.empty() && profiles.back() == &profile) {
      ++groups.back().count;
      continue;
    }
    profiles.push_back(&profile);
    auto& group = groups.emplace_back(PlaceGroup{.count = 1, .options = {}});
    for (const auto& place : profile.places)
      group.options.push_back({place, compute_gain(profile, place, present, held)});
  }
  const auto found = find_places(groups, [](SliceMask) { return std::vector<unsigned>{}; });
  ComputeChoice choice;
  if (!found) return choice;
  choice.gain = found->gain;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const auto& option : found->places[i])
      choice.wanted.push_back({profiles[i]->name, profiles[i]->id, option.place});
  }
  std::sort(choice.wanted.begin(), choice.wanted.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return choice;
}

const GpuInstance* instance_at(const ProfileTable& table, std::size_t profile,
                               const Placement& place) {
  for (const auto& instance : table.gpu.instances) {
    if (instance.place == place && has_profile(table.names[profile], instance.profile))
      return &instance;
  }
  return nullptr;
}

struct PlacedKind {
  InstanceKind kind;
  Placement place;
};
struct Attempt {
  std::vector<PlacedKind> instances;  // by place
  Gain gain;
};

std::optional<Attempt> attempt(const ProfileTable& table, const InstanceKinds& kinds, Held held) {
  const auto counts = count_profiles(table, kinds);
  if (!follows_rules(table, counts)) return std::nullopt;
  const auto kind_groups = group_kinds(kinds);
  std::vector<PlaceGroup> groups;
  for (const auto& [kind, count] : kind_groups) {
    auto& group = groups.emplace_back(PlaceGroup{.count = count, .options = {}});
    for (const auto& place : possible_places(table, kind)) {
      const auto* present = instance_at(table, kind.profile, place);
      Gain gain;
      if (present != nullptr)
        gain = choose_compute(table, kind, present, held).gain + Gain{0, 0, 1};
      group.options.push_back({place, gain});
    }
  }
  const auto found =
      find_places(groups, [&](SliceMask taken) { return room_left(table, counts, taken); });
  if (!found) return std::nullopt;
  Attempt result{.instances = {}, .gain = found->gain};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const auto& option : found->places[i])
      result.instances.push_back({kind_groups[i].kind, option.place});
  }
  std::sort(result.instances.begin(), result.instances.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return result;
}

// Splits the compute instances of a kept GPU instance into those that stay and those that go.
KeptGpuInstance keep(const GpuInstance& present, const std::vector<ComputeCreation>& wanted) {
  KeptGpuInstance kept{.id = present.id, .profile = present.profile, .place = present.place};
  const auto same = [](const ComputeInstance& old, const ComputeCreation& creation) {
    const auto name = parse_profile_name(creation.profile);
    return old.place == creation.place && name.ok() && has_profile(*name, old.profile);
  };
  for (const auto& old : present.compute) {
    const bool stays = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const auto& creation) { return same(old, creation); });
    (stays ? kept.keep : kept.destroy).push_back(old);
  }
  for (const auto& creation : wanted) {
    const bool there = std::any_of(present.compute.begin(), present.compute.end(),
                                   [&](const auto& old) { return same(old, creation); });
    if (!there) kept.create.push_back(creation);
  }
  return kept;
}

// A mode that waits for a reset counts, too.
bool mode_differs(const MigGpu& gpu, model::MigMode mode) {
  return gpu.current != mode || (gpu.pending != mode && gpu.pending != model::MigMode::Unknown);
}

LayoutPlan to_plan(const ProfileTable& table, const Attempt& attempt, Held held) {
  LayoutPlan plan{.changes_mode = mode_differs(table.gpu, model::MigMode::Enabled)};
  std::vector<const GpuInstance*> kept;
  for (const auto& [kind, place] : attempt.instances) {
    const auto& profile = table.gpu.profiles[kind.profile];
    const auto* present = instance_at(table, kind.profile, place);
    auto compute = choose_compute(table, kind, present, held).wanted;
    if (present == nullptr) {
      plan.create.push_back({profile.name, profile.id, place, std::move(compute)});
      continue;
    }
    plan.keep.push_back(keep(*present, compute));
    kept.push_back(present);
  }
  for (const auto& instance : table.gpu.instances) {
    if (std::find(kept.begin(), kept.end(), &instance) == kept.end())
      plan.destroy.push_back(instance);
  }
  return plan;
}

std::vector<ComputeInstance> held_losses(const LayoutPlan& plan, Held held) {
  std::vector<ComputeInstance> lost;
  const auto add = [&](const std::vector<ComputeInstance>& instances) {
    const auto found = held_of(instances, held);
    lost.insert(lost.end(), found.begin(), found.end());
  };
  for (const auto& instance : plan.destroy) add(instance.compute);
  for (const auto& instance : plan.keep) add(instance.destroy);
  return lost;
}

LayoutRefusal refuse_held(std::vector<ComputeInstance> held) {
  std::vector<std::string> names;
  names.reserve(held.size());
  for (const auto& instance : held)
    names.push_back(fmt::format("{} ({})", instance.uuid.text, instance.profile));
  return {.reason = fmt::format("{} in use and would be destroyed: {}",
                                held.size() == 1 ? "an instance is" : "instances are",
                                fmt::join(names, ", ")),
          .held = std::move(held),
          .nearest = std::nullopt};
}

LayoutDecision unless_held(LayoutPlan plan, Held held) {
  auto lost = held_losses(plan, held);
  if (!lost.empty()) return refuse_held(std::move(lost));
  return plan;
}

LayoutPlan plan_without_mig(const MigGpu& gpu) {
  return {.mode = model::MigMode::Disabled,
          .changes_mode = mode_differs(gpu, model::MigMode::Disabled),
          .keep = {},
          .destroy = gpu.instances,
          .create = {}};
}

// Whether the request is only about how many there are, and the GPU has exactly those.
bool is_present(const ProfileTable& table, const LayoutRequest& request) {
  ProfileCounts counts;
  for (const auto& item : request.instances) {
    if (item.start || !item.compute_slices.empty()) return false;
    counts[to_string(item.profile)] += item.count;
  }
  const auto& instances = table.gpu.instances;
  return counts == current_counts(table.gpu) &&
         std::none_of(instances.begin(), instances.end(),
                      [](const GpuInstance& instance) { return instance.compute.empty(); });
}

LayoutPlan plan_of_present(const ProfileTable& table) {
  LayoutPlan plan{.changes_mode = mode_differs(table.gpu, model::MigMode::Enabled)};
  for (const auto& instance : table.gpu.instances)
    plan.keep.push_back({.id = instance.id,
                         .profile = instance.profile,
                         .place = instance.place,
                         .keep = instance.compute,
                         .destroy = {},
                         .create = {}});
  return plan;
}

std::string places_text(const ProfileTable& table, std::size_t profile) {
  const auto& places = table.gpu.profiles[profile].places;
  std::vector<unsigned> starts;
  starts.reserve(places.size());
  for (const auto& place : places) starts.push_back(place.start);
  return fmt::format("{} takes {} from {}", table.gpu.profiles[profile].name,
                     counted(table.size(profile), "memory slice"), fmt::join(starts, ", "));
}

std::string why_not(const ProfileTable& table, const InstanceKinds& kinds) {
  if (auto reason = broken_rule(table, kinds); !reason.empty()) return reason;
  std::vector<std::string> sentences;
  const auto counts = count_profiles(table, kinds);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) sentences.push_back(places_text(table, i));
  }
  return fmt::format("these instances overlap wherever they are: {}", fmt::join(sentences, "; "));
}

}  // namespace

bool LayoutPlan::changes_instances() const {
  return !destroy.empty() || !create.empty() ||
         std::any_of(keep.begin(), keep.end(), [](const KeptGpuInstance& instance) {
           return !instance.destroy.empty() || !instance.create.empty();
         });
}

Error LayoutRefusal::to_error(const MigGpu& gpu) const {
  Error error(held.empty() ? Errc::Invalid : Errc::Busy,
              fmt::format("GPU {}: {}", gpu.index, reason));
  if (!held.empty()) return std::move(error).advise("stop the processes that use them first");
  if (!nearest) return error;
  return std::move(error).advise(fmt::format("nearest: {}", to_words(*nearest)));
}

LayoutDecision solve_quickly(const MigGpu& gpu, const LayoutRequest& request, Held held) {
  if (gpu.current == model::MigMode::Unsupported) {
    if (!request.enabled) return LayoutPlan{.mode = model::MigMode::Disabled};
    return LayoutRefusal{.reason = fmt::format("{} has no MIG", gpu.name)};
  }
  if (!request.enabled) return unless_held(plan_without_mig(gpu), held);
  const ProfileTable table(gpu);
  if (is_present(table, request)) return plan_of_present(table);
  const auto alternatives = expand(table, request);
  if (!alternatives.ok()) return LayoutRefusal{.reason = alternatives.error().text()};
  std::optional<LayoutPlan> best;
  std::optional<Gain> best_gain;
  for (const auto& kinds : *alternatives) {
    const auto found = attempt(table, kinds, held);
    if (!found || (best_gain && found->gain.held <= best_gain->held)) continue;
    best = to_plan(table, *found, held);
    best_gain = found->gain;
    if (held_losses(*best, held).empty()) break;
  }
  if (best) return unless_held(*std::move(best), held);
  return LayoutRefusal{.reason = why_not(table, alternatives->front())};
}

LayoutDecision solve(const MigGpu& gpu, const LayoutRequest& request, Held held) {
  auto decision = solve_quickly(gpu, request, held);
  auto* refusal = std::get_if<LayoutRefusal>(&decision);
  if (refusal != nullptr && refusal->held.empty()) refusal->nearest = nearest_layout(gpu, request);
  return decision;
}

MigGpu after(const MigGpu& gpu, const LayoutPlan& plan) {
  auto next = gpu;
  next.current = next.pending = plan.mode;
  next.instances.clear();
  const auto add = [](GpuInstance& instance, const std::vector<ComputeCreation>& creations) {
    for (const auto& creation : creations)
      instance.compute.push_back(
          {.profile = creation.profile, .place = creation.place, .uuid = {}});
    std::sort(instance.compute.begin(), instance.compute.end(),
              [](const auto& a, const auto& b) { return a.place < b.place; });
  };
  for (const auto& kept : plan.keep) {
    GpuInstance instance{
        .id = kept.id, .profile = kept.profile, .place = kept.place, .compute = kept.keep};
    add(instance, kept.create);
    next.instances.push_back(std::move(instance));
  }
  for (const auto& creation : plan.create) {
    GpuInstance instance{.profile = creation.profile, .place = creation.place, .compute = {}};
    add(instance, creation.compute);
    next.instances.push_back(std::move(instance));
  }
  std::sort(next.instances.begin(), next.instances.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return next;
}

}  // namespace gantry::mig
