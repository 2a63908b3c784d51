// SPDX-License-Identifier: Apache-2.0
// The steps about a pod's request for shared GPUs, and about its grant.
#include "cluster/explain/share_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::explain {
namespace {

std::string describe_memory(const podspec::Amount& memory) {
  switch (memory.kind) {
    case podspec::Amount::Kind::Units:
      return fmt::format("{} of {}", memory.value, podspec::kAliyunGpuMem);
    case podspec::Amount::Kind::MiB: return fmt::format("{} MiB", memory.value);
    case podspec::Amount::Kind::Percent: break;
  }
  return fmt::format("{} % of the memory", memory.value);
}

std::string describe_container(const podspec::ContainerRequest& container) {
  auto text = fmt::format("{}: {}", container.container, describe_memory(container.memory));
  if (container.gpus > 1) text += fmt::format(" of each of {} GPUs", container.gpus);
  if (container.cores == 100) return text + ", with no other pod on it";
  if (container.cores > 0) text += fmt::format(", {} % of the time", container.cores);
  return text;
}

std::string describe_container(const podspec::ContainerPlacement& container) {
  std::vector<std::string> parts;
  for (const auto& part : container.parts) {
    parts.push_back(fmt::format("GPU{} ({}) {} MiB", part.index, part.uuid.text, part.mib));
    if (part.cores > 0) parts.back() += fmt::format(", {} % of its time", part.cores);
  }
  return fmt::format("{}: {}", container.container, fmt::join(parts, " and "));
}

template <class List>
std::string describe_all(const List& list) {
  std::vector<std::string> all;
  for (const auto& one : list) all.push_back(describe_container(one));
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

std::string describe(const podspec::PodRequest& ask) {
  return describe_all(ask.containers);
}

Step request_step(const Result<std::optional<podspec::PodRequest>>& ask) {
  Step step{.id = "spec.share", .what = "The pod asks for a share of a GPU"};
  if (ask.ok() && *ask) {
    step.read = describe(**ask);
    return step;
  }
  if (ask.ok()) return step;
  step.verdict = StepStatus::Failed;
  step.cause = ask.error().cause();
  step.read = step.cause;
  step.remedy = ask.error().remedy();
  if (step.remedy.empty()) step.remedy = "Gantry's docs/scheduling.md lists what a pod can ask for";
  return step;
}

Step placement_step(json::Value pod, const podspec::PodRequest& ask,
                    const placement::NodeView& view) {
  Step step{.id = "share.placement", .what = "GPUs were chosen for it"};
  std::vector<podspec::CardId> cards;
  for (const auto& card : view.facts.cards)
    cards.push_back({.index = card.index, .uuid = card.uuid});
  const auto placement = podspec::read_placement(pod, ask, cards, view.facts.unit_mib);
  if (!placement.ok()) {
    step.verdict = StepStatus::Failed;
    step.cause = fmt::format("its annotation {} cannot be read: {}", podspec::kPlacementAnnotation,
                             placement.error().text());
    step.remedy = "delete the pod: the scheduler then places its replacement";
  } else if (!*placement) {
    step.verdict = StepStatus::Warning;
    step.read = fmt::format("no {} annotation", podspec::kPlacementAnnotation);
    step.cause =
        "another scheduler, or spec.nodeName, put the pod on its node without choosing a GPU: the "
        "node's agent chooses one when a container starts, and until then the amount is kept free "
        "on every card";
    step.remedy =
        "use a scheduler that calls the extender: remove spec.nodeName from the pod, and set "
        "spec.schedulerName to a scheduler that deploy/gpushare configures";
  } else {
    step.read = describe_all(**placement);
  }
  return step;
}

}  // namespace gantry::explain
