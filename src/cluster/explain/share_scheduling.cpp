// SPDX-License-Identifier: Apache-2.0
// Why no node has room for a share: for each card, with the pods that hold the rest.
#include "cluster/explain/pod_steps.hpp"
#include "cluster/explain/share_steps.hpp"
#include "cluster/podspec/unhealthy_gpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace gantry::explain {
namespace {

constexpr std::size_t kNodes = 8, kCards = 8, kTenants = 4;  // maximum numbers that are named

using placement::Refusal;
using NodeFits = std::vector<NodeFit>;

std::string amount(std::uint64_t mib) {
  return mib % 1024 == 0 ? fmt::format("{} GiB", mib / 1024) : fmt::format("{} MiB", mib);
}

std::uint64_t free_of(const placement::CardView& card) {
  return card.facts.mib > card.used_mib ? card.facts.mib - card.used_mib : 0;
}

std::string holders(const placement::CardView& card) {
  auto tenants = card.tenants;
  std::sort(tenants.begin(), tenants.end(), [](const auto& a, const auto& b) {
    return std::tie(b.mib, a.pod.name_space, a.pod.name) <
           std::tie(a.mib, b.pod.name_space, b.pod.name);
  });
  std::vector<std::string> names;
  for (const auto& tenant : tenants) {
    if (names.size() == kTenants) break;
    names.push_back(fmt::format("{} has {}", to_string(tenant.pod), amount(tenant.mib)));
    if (tenant.cores > 0) names.back() += fmt::format(" and {} %", tenant.cores);
  }
  if (tenants.size() > kTenants) names.push_back(fmt::format("{} more", tenants.size() - kTenants));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string card_words(const placement::CardView& card, const std::string& node) {
  auto text = fmt::format("GPU{}: {} of {} free", card.facts.index, amount(free_of(card)),
                          amount(card.facts.mib));
  if (card.used_cores > 0)
    text += fmt::format(", {} % of its time", card.used_cores < 100 ? 100 - card.used_cores : 0);
  if (!card.facts.healthy) text += ", unhealthy";
  if (card.facts.marked_unhealthy)
    text += fmt::format(", marked unhealthy by {}", podspec::unhealthy_config_map_name(node));
  if (!card.tenants.empty()) text += fmt::format(" ({})", holders(card));
  return text;
}

std::string cards_words(const placement::NodeView& view) {
  std::vector<std::string> all;
  for (const auto& card : view.cards) {
    if (all.size() == kCards) break;
    all.push_back(card_words(card, view.facts.name));
  }
  if (view.cards.size() > kCards)
    all.push_back(fmt::format("{} more GPUs", view.cards.size() - kCards));
  for (const auto& tenant : view.unplaced)
    all.push_back(
        fmt::format("{} waits here for a GPU with {}", to_string(tenant.pod), amount(tenant.mib)));
  return fmt::format("{}", fmt::join(all, "; "));
}

Step node_step(const NodeFit& node_fit, const podspec::PodRequest& ask) {
  Step step{.id = "node." + node_fit.view.facts.name,
            .what = "Room on " + node_fit.view.facts.name,
            .read = cards_words(node_fit.view)};
  if (!node_fit.refuses.empty()) {
    step.verdict = StepStatus::Failed;
    step.cause = fmt::format("{}: {}", node_fit.view.facts.name, node_fit.refuses);
    step.remedy = node_fit.remedy;
  } else if (node_fit.fit.refusal != Refusal::None) {
    step.verdict = StepStatus::Failed;
    step.cause = placement::describe(node_fit.fit, ask, node_fit.view.facts.name);
  }
  if (step.verdict == StepStatus::Failed) step.read = fmt::format("{} | {}", step.cause, step.read);
  return step;
}

std::uint64_t largest(const NodeFits& node_fits, std::uint64_t (*of)(const placement::CardView&)) {
  std::uint64_t most = 0;
  for (const auto& node_fit : node_fits) {
    for (const auto& card : node_fit.view.cards)
      if (card.facts.usable()) most = std::max(most, of(card));
  }
  return most;
}

std::string remedy_for(Refusal refusal, const NodeFits& node_fits) {
  switch (refusal) {
    case Refusal::None:
    case Refusal::NoSharedGpus: break;
    case Refusal::TooBig:
      return fmt::format(
          "ask for less of each GPU (the largest has {}), or for several GPUs (gantry.dev/gpus: "
          "\"2\")",
          amount(
              largest(node_fits, [](const placement::CardView& card) { return card.facts.mib; })));
    case Refusal::NoMatch:
      return "change the pod's annotations for type, UUID or NUMA node; `gantry inspect -o wide` "
             "shows the GPUs";
    case Refusal::Unhealthy:
      return "on the node: gantry doctor; the node's annotation hami.io/device-cordon and the "
             "ConfigMap kube-system/unhealthy-gpu-NODE also mark GPUs as unhealthy";
    case Refusal::Memory:
    case Refusal::Cores:
    case Refusal::Slots:
    case Refusal::Exclusive:
      return fmt::format(
          "wait until one of the pods on it ends, delete one, or ask for at most {} (`gantry "
          "inspect` shows all pods)",
          amount(largest(node_fits, free_of)));
    case Refusal::Quota:
      return "ask for less, end another pod of the namespace, or raise the namespace's "
             "gantry.dev/gpu-memory-quota or its ResourceQuota";
  }
  return "kubectl apply -k deploy/gpushare, then kubectl label node NODE gpushare=true";
}

std::string refusal_words(const NodeFit& node_fit, const podspec::PodRequest& ask,
                          std::size_t nodes) {
  auto sentence = placement::describe(node_fit.fit, ask, node_fit.view.facts.name);
  if (node_fit.fit.refusal == Refusal::Quota) return sentence;
  const auto text = fmt::format("{}: {}", node_fit.view.facts.name, sentence);
  return nodes == 1 ? text
                    : fmt::format("none of the {} nodes that share GPUs has room; {}", nodes, text);
}

// The rejection that is easiest to resolve: those that end when other pods leave come first.
const NodeFit* nearest(const NodeFits& node_fits) {
  const NodeFit* best = nullptr;
  const auto rank = [](const NodeFit& node_fit) {
    if (placement::resolvable(node_fit.fit.refusal)) return 0;
    if (node_fit.fit.refusal == Refusal::Quota) return 1;
    return node_fit.fit.refusal == Refusal::Unhealthy ? 2 : 3;
  };
  for (const auto& node_fit : node_fits) {
    if (node_fit.refuses.empty() && (best == nullptr || rank(node_fit) < rank(*best)))
      best = &node_fit;
  }
  return best;
}

void explain_waiting(Step& step, const podspec::PodRequest& ask, const NodeFits& node_fits,
                     const std::string& said) {
  const auto fits = [](const NodeFit& node_fit) { return node_fit.fit.refusal == Refusal::None; };
  const auto kept = std::find_if(node_fits.begin(), node_fits.end(), [&](const NodeFit& node_fit) {
    return fits(node_fit) && !node_fit.refuses.empty();
  });
  const auto open = std::find_if(node_fits.begin(), node_fits.end(), [&](const NodeFit& node_fit) {
    return fits(node_fit) && node_fit.refuses.empty();
  });
  const auto* refused = nearest(node_fits);
  if (node_fits.empty()) {
    step.cause = "no node of the cluster shares its GPUs";
    step.remedy = remedy_for(Refusal::NoSharedGpus, node_fits);
  } else if (open != node_fits.end()) {
    step.cause = fmt::format("{} has room; the scheduler says: {}", open->view.facts.name, said);
    step.remedy =
        "kubectl describe pod shows its events; kubectl -n kube-system get pods -l "
        "component=gpushare-schd-extender shows whether the extender runs";
  } else if (kept != node_fits.end()) {
    step.cause = fmt::format("{} has room but does not accept this pod: {}", kept->view.facts.name,
                             kept->refuses);
    step.remedy = kept->remedy;
  } else if (refused != nullptr) {
    step.cause = refusal_words(*refused, ask, node_fits.size());
    step.remedy = remedy_for(refused->fit.refusal, node_fits);
  } else {
    step.cause = fmt::format("the nodes that share GPUs do not accept this pod: {}: {}",
                             node_fits.front().view.facts.name, node_fits.front().refuses);
    step.remedy = node_fits.front().remedy;
  }
}

}  // namespace

bool has_shared_gpus(const NodeFits& node_fits) {
  return std::any_of(node_fits.begin(), node_fits.end(),
                     [](const NodeFit& node_fit) { return !node_fit.view.cards.empty(); });
}

std::vector<Step> share_scheduling_steps(json::Value pod, const podspec::PodRequest& ask,
                                         const NodeFits& all) {
  NodeFits node_fits;
  std::copy_if(all.begin(), all.end(), std::back_inserter(node_fits),
               [](const NodeFit& node_fit) { return !node_fit.view.cards.empty(); });
  const auto said = condition(pod, "PodScheduled")["message"].string().value_or(
      "the scheduler has not processed it yet");
  std::vector<Step> steps{{.id = "scheduling",
                           .what = "A node was found for it",
                           .verdict = StepStatus::Failed,
                           .read = said}};
  explain_waiting(steps.front(), ask, node_fits, said);
  // The scheduler is evicting other pods for it.
  if (const auto node = pod["status"]["nominatedNodeName"].string().value_or(""); !node.empty()) {
    steps.front().cause += fmt::format("; the scheduler is making room for it on node {}", node);
    steps.front().remedy =
        "wait until pods of lower priority there have ended; kubectl describe pod names them";
  }
  for (const auto& node_fit : node_fits) {
    if (steps.size() > kNodes) break;
    steps.push_back(node_step(node_fit, ask));
  }
  if (node_fits.size() > kNodes)
    steps.push_back({.id = "nodes",
                     .what = fmt::format("And {} more nodes", node_fits.size() - kNodes),
                     .verdict = StepStatus::Unknown,
                     .read = "gantry inspect -d shows all of them"});
  return steps;
}

}  // namespace gantry::explain
