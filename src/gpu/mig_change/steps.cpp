// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::mig_change {
namespace {

using mig::ComputeInstance;
using mig::GpuInstance;
using mig::MigGpu;

bool is_same_place(const mig::Placement& wanted, const mig::Placement& present) {
  return wanted.size == 0 || present.size == 0 || wanted == present;
}

bool matches(const LayoutCompute& wanted, const ComputeInstance& present) {
  return wanted.profile == present.profile && is_same_place(wanted.place, present.place);
}

bool matches(const LayoutInstance& wanted, const GpuInstance& present) {
  return wanted.profile == present.profile && wanted.place == present.place;
}

// The compute instances of a GPU instance that stays.
struct ComputeChange {
  std::vector<const ComputeInstance*> gone;
  std::vector<const LayoutCompute*> missing;
};

ComputeChange compare(const LayoutInstance& wanted, const GpuInstance& present) {
  ComputeChange change;
  std::vector<const ComputeInstance*> left;
  for (const auto& one : present.compute) left.push_back(&one);
  for (const auto& one : wanted.compute) {
    const auto found = std::find_if(left.begin(), left.end(), [&](const ComputeInstance* compute) {
      return matches(one, *compute);
    });
    if (found == left.end()) {
      change.missing.push_back(&one);
    } else {
      left.erase(found);
    }
  }
  change.gone = std::move(left);
  return change;
}

Step destroy_compute(const GpuInstance& instance, const ComputeInstance& compute) {
  return {.kind = StepKind::DestroyCompute,
          .gpu_instance = instance.id,
          .compute_instance = compute.id,
          .profile = compute.profile,
          .place = instance.place,
          .compute = compute.place,
          .uuid = compute.uuid};
}

Step create_compute(const LayoutInstance& instance, const LayoutCompute& compute) {
  return {.kind = StepKind::CreateCompute,
          .profile = compute.profile,
          .place = instance.place,
          .compute = compute.place};
}

struct StepLists {
  std::vector<Step> destroy_compute, destroy, create;
};

void add_removal(const GpuInstance& instance, StepLists& lists) {
  for (const auto& compute : instance.compute)
    lists.destroy_compute.push_back(destroy_compute(instance, compute));
  lists.destroy.push_back({.kind = StepKind::DestroyInstance,
                           .gpu_instance = instance.id,
                           .profile = instance.profile,
                           .place = instance.place});
}

void add_creation(const LayoutInstance& instance, StepLists& lists) {
  lists.create.push_back(
      {.kind = StepKind::CreateInstance, .profile = instance.profile, .place = instance.place});
  for (const auto& compute : instance.compute)
    lists.create.push_back(create_compute(instance, compute));
}

void add_difference(const LayoutInstance& wanted, const GpuInstance& present, StepLists& lists) {
  const auto change = compare(wanted, present);
  for (const auto* compute : change.gone)
    lists.destroy_compute.push_back(destroy_compute(present, *compute));
  for (const auto* compute : change.missing)
    lists.create.push_back(create_compute(wanted, *compute));
}

template <class List, class Other>
auto find_match(const List& list, const Other& other) {
  return std::find_if(list.begin(), list.end(), [&](const auto& one) {
    if constexpr (requires { matches(one, other); }) {
      return matches(one, other);
    } else {
      return matches(other, one);
    }
  });
}

std::string describe_place(const mig::Placement& place) {
  return fmt::format("at {}", place.start);
}

}  // namespace

Layout layout_of(const MigGpu& gpu) {
  Layout layout{.enabled = gpu.current == model::MigMode::Enabled};
  for (const auto& instance : gpu.instances) {
    auto compute = instance.compute;
    std::sort(compute.begin(), compute.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    LayoutInstance one{.profile = instance.profile, .place = instance.place};
    for (const auto& each : compute)
      one.compute.push_back({.profile = each.profile, .place = each.place});
    layout.instances.push_back(std::move(one));
  }
  return layout;
}

std::string describe(const Layout& layout) {
  if (!layout.enabled) return "no MIG";
  if (layout.instances.empty()) return "MIG without instances";
  std::vector<std::string> parts;
  for (const auto& instance : layout.instances) {
    auto text = fmt::format("{} {}", instance.profile, describe_place(instance.place));
    const bool whole =
        instance.compute.size() == 1 && instance.compute.front().profile == instance.profile;
    if (!whole && instance.compute.empty()) text += " (no compute instance)";
    if (!whole && !instance.compute.empty()) {
      std::vector<std::string> names;
      for (const auto& compute : instance.compute) names.push_back(compute.profile);
      text += fmt::format(" ({})", fmt::join(names, " "));
    }
    parts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe(const Step& step) {
  switch (step.kind) {
    case StepKind::DestroyCompute:
      return fmt::format("destroy compute instance {} of GPU instance {} ({}{})",
                         step.compute_instance, step.gpu_instance, step.profile,
                         step.uuid.text.empty() ? "" : ", " + step.uuid.text);
    case StepKind::DestroyInstance:
      return fmt::format("destroy GPU instance {} ({} {})", step.gpu_instance, step.profile,
                         describe_place(step.place));
    case StepKind::SetMode: return step.enable ? "turn MIG on" : "turn MIG off";
    case StepKind::CreateInstance:
      return fmt::format("create GPU instance {} {}", step.profile, describe_place(step.place));
    case StepKind::CreateCompute:
      return fmt::format("create compute instance {} in the GPU instance {}", step.profile,
                         describe_place(step.place));
  }
  return "";
}

std::vector<Step> steps_to(const MigGpu& gpu, const Layout& wanted) {
  StepLists lists;
  for (const auto& instance : gpu.instances) {
    const auto same = find_match(wanted.instances, instance);
    if (!wanted.enabled || same == wanted.instances.end()) {
      add_removal(instance, lists);
    } else {
      add_difference(*same, instance, lists);
    }
  }
  for (const auto& instance : wanted.instances) {
    if (find_match(gpu.instances, instance) == gpu.instances.end()) add_creation(instance, lists);
  }
  std::vector<Step> steps = std::move(lists.destroy_compute);
  steps.insert(steps.end(), lists.destroy.begin(), lists.destroy.end());
  const auto mode = wanted.enabled ? model::MigMode::Enabled : model::MigMode::Disabled;
  const bool has_no_mig = !wanted.enabled && gpu.current == model::MigMode::Unsupported;
  if (!has_no_mig && (gpu.current != mode || gpu.pending != mode))
    steps.push_back({.kind = StepKind::SetMode, .enable = wanted.enabled});
  steps.insert(steps.end(), lists.create.begin(), lists.create.end());
  return steps;
}

bool is_destruction(const Step& step) {
  return step.kind == StepKind::DestroyCompute || step.kind == StepKind::DestroyInstance;
}

bool changes_mode(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.kind == StepKind::SetMode; });
}

std::vector<model::GpuUuid> kept_instances(const MigGpu& gpu, const std::vector<Step>& steps) {
  std::vector<model::GpuUuid> kept;
  if (changes_mode(steps)) return kept;
  for (const auto& instance : gpu.instances) {
    for (const auto& compute : instance.compute) {
      const auto goes = [&](const Step& step) {
        return step.kind == StepKind::DestroyCompute && step.gpu_instance == instance.id &&
               step.compute_instance == compute.id;
      };
      if (std::none_of(steps.begin(), steps.end(), goes) && !compute.uuid.text.empty())
        kept.push_back(compute.uuid);
    }
  }
  return kept;
}

std::vector<GoingInstance> going_instances(const std::vector<Step>& steps) {
  std::vector<GoingInstance> going;
  for (const auto& step : steps) {
    if (step.kind == StepKind::DestroyCompute)
      going.push_back({.uuid = step.uuid,
                       .gpu_instance = step.gpu_instance,
                       .compute_instance = step.compute_instance});
  }
  return going;
}

}  // namespace gantry::mig_change
