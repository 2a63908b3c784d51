// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/pod_group.hpp"

#include "cluster/explain/infrastructure.hpp"
#include "cluster/explain/node_rejection.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::explain {
namespace {

struct GroupLabel {
  std::string_view label;
  std::string_view kind;  // "": the kind of the object that created the pod
};

// A JobSet's pods have a Job's label as well, so it comes first.
constexpr std::array<GroupLabel, 6> kGroupLabels{
    {{"jobset.sigs.k8s.io/jobset-name", "JobSet"},
     {"leaderworkerset.sigs.k8s.io/name", "LeaderWorkerSet"},
     {"training.kubeflow.org/job-name", ""},
     {"volcano.sh/job-name", "Job"},
     {"ray.io/cluster", "RayCluster"},
     {"batch.kubernetes.io/job-name", "Job"}}};
constexpr std::string_view kIndex = "batch.kubernetes.io/job-completion-index";

std::string full_name(json::Value pod) {
  return fmt::format("{}/{}", pod["metadata"]["namespace"].string_or_empty(),
                     pod["metadata"]["name"].string_or_empty());
}

bool is_waiting(json::Value pod) {
  return pod["status"]["phase"].string() == "Pending" &&
         pod["spec"]["nodeName"].string_or_empty().empty();
}

}  // namespace

bool PodGroup::has(json::Value pod) const {
  return pod["metadata"]["namespace"].string_or_empty() == name_space &&
         pod["metadata"]["labels"][label].string() == name;
}

std::optional<PodGroup> group_of(json::Value pod) {
  for (const auto& [label, kind] : kGroupLabels) {
    auto name = pod["metadata"]["labels"][label].string_or_empty();
    if (name.empty()) continue;
    // The pods of a Job without indexes work one by one.
    if (label == "batch.kubernetes.io/job-name" && !pod["metadata"]["annotations"][kIndex])
      return std::nullopt;
    return PodGroup{.kind = kind.empty() ? creator_kind(pod) : std::string(kind),
                    .name = std::move(name),
                    .label = std::string(label),
                    .name_space = pod["metadata"]["namespace"].string_or_empty()};
  }
  return std::nullopt;
}

void count_group(GroupState& state, const PodGroup& group, json::Value pods) {
  for (const auto pod : pods["items"]) {
    if (!group.has(pod) || podspec::is_finished(pod)) continue;
    ++state.pods;
    if (pod["status"]["phase"].string_or_empty() == "Running") ++state.running;
    if (is_waiting(pod)) state.waiting.push_back(full_name(pod));
  }
  std::sort(state.waiting.begin(), state.waiting.end());
}

std::optional<Step> group_step(json::Value pod, const PodGroup& group, const GroupState& state) {
  if (state.waiting.empty() || state.pods < 2) return std::nullopt;
  const auto whole = fmt::format("{} {}/{}", group.kind, group.name_space, group.name);
  Step step{.id = "group",
            .what = fmt::format("The {} it belongs to runs", group.kind),
            .verdict = StepStatus::Warning,
            .read = fmt::format("{}: {} of {} pods run, {} {} for a node", whole, state.running,
                                state.pods, state.waiting.size(),
                                state.waiting.size() == 1 ? "waits" : "wait")};
  if (is_waiting(pod)) {
    step.cause =
        fmt::format("this pod holds up {}: its other pods keep their GPUs meanwhile", whole);
    return step;
  }
  const auto& first = state.waiting.front();
  step.cause = fmt::format("{} waits for a node and holds up {}", first, whole);
  if (is_plain_word(first)) step.remedy = "gantry why pod " + first;
  return step;
}

}  // namespace gantry::explain
