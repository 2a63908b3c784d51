// SPDX-License-Identifier: Apache-2.0
// Why no node has room for a share: card by card, with who holds the rest.
#include "cluster/podspec/barred.hpp"
#include "node/why/pod.hpp"
#include "node/why/shares.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace gantry::why {
namespace {

constexpr std::size_t kNodes = 8, kCards = 8, kTenants = 4;  // that are named

using placement::Refusal;
using Stands = std::vector<Stand>;

std::string amount(std::uint64_t mib) {
  return mib % 1024 == 0 ? fmt::format("{} GiB", mib / 1024) : fmt::format("{} MiB", mib);
}

std::uint64_t free_of(const placement::CardView& card) {
  return card.facts.mib > card.used_mib ? card.facts.mib - card.used_mib : 0;
}

std::string holders(const placement::CardView& card) {
  auto tenants = card.tenants;
  std::sort(tenants.begin(), tenants.end(), [](const auto& a, const auto& b) {
    return std::tie(b.mib, a.name_space, a.name) < std::tie(a.mib, b.name_space, b.name);
  });
  std::vector<std::string> names;
  for (const auto& tenant : tenants) {
    if (names.size() == kTenants) break;
    names.push_back(
        fmt::format("{}/{} has {}", tenant.name_space, tenant.name, amount(tenant.mib)));
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
  if (!card.facts.healthy) text += ", not usable";
  if (card.facts.barred) text += fmt::format(", barred by {}", podspec::barring_map(node));
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
    all.push_back(fmt::format("{}/{} waits for a GPU here with {}", tenant.name_space, tenant.name,
                              amount(tenant.mib)));
  return fmt::format("{}", fmt::join(all, "; "));
}

Link node_link(const Stand& stand, const podspec::PodAsk& ask) {
  Link link{.id = "node." + stand.view.facts.name,
            .what = "Room on " + stand.view.facts.name,
            .read = cards_words(stand.view)};
  if (!stand.refuses.empty()) {
    link.verdict = Verdict::Broken;
    link.cause = fmt::format("{}: {}", stand.view.facts.name, stand.refuses);
    link.remedy = stand.remedy;
  } else if (stand.fit.refusal != Refusal::None) {
    link.verdict = Verdict::Broken;
    link.cause = placement::sentence(stand.fit, ask, stand.view.facts.name);
  }
  if (link.verdict == Verdict::Broken) link.read = fmt::format("{} | {}", link.cause, link.read);
  return link;
}

std::uint64_t largest(const Stands& stands, std::uint64_t (*of)(const placement::CardView&)) {
  std::uint64_t most = 0;
  for (const auto& stand : stands) {
    for (const auto& card : stand.view.cards)
      if (card.facts.usable()) most = std::max(most, of(card));
  }
  return most;
}

std::string remedy_for(Refusal refusal, const Stands& stands) {
  switch (refusal) {
    case Refusal::None:
    case Refusal::NoSharedGpus: break;
    case Refusal::TooBig:
      return fmt::format(
          "ask for less of each GPU, the largest has {}; or for several (gantry.dev/gpus: \"2\")",
          amount(largest(stands, [](const placement::CardView& card) { return card.facts.mib; })));
    case Refusal::NoMatch:
      return "change the pod's annotations for type, UUID or NUMA node; `gantry inspect -o wide` "
             "shows what there is";
    case Refusal::Unhealthy:
      return "on the node: gantry doctor; a cordon is the node's annotation hami.io/device-cordon, "
             "or ConfigMap kube-system/unhealthy-gpu-NODE";
    case Refusal::Memory:
    case Refusal::Cores:
    case Refusal::Slots:
    case Refusal::Exclusive:
      return fmt::format(
          "wait for one of the pods that hold it, delete one, or ask for at most {} (`gantry "
          "inspect` shows all)",
          amount(largest(stands, free_of)));
    case Refusal::Quota:
      return "ask for less, end another pod of the namespace, or raise the namespace's "
             "gantry.dev/gpu-memory-quota or its ResourceQuota";
  }
  return "kubectl apply -k deploy/gpushare, then kubectl label node NODE gpushare=true";
}

std::string refusal_words(const Stand& stand, const podspec::PodAsk& ask, std::size_t nodes) {
  auto sentence = placement::sentence(stand.fit, ask, stand.view.facts.name);
  if (stand.fit.refusal == Refusal::Quota) return sentence;
  const auto text = fmt::format("{}: {}", stand.view.facts.name, sentence);
  return nodes == 1 ? text
                    : fmt::format("none of the {} nodes that share GPUs has room; {}", nodes, text);
}

// The refusal that is nearest to a yes: what others leaving would mend before what nothing mends.
const Stand* nearest(const Stands& stands) {
  const Stand* best = nullptr;
  const auto rank = [](const Stand& stand) {
    if (placement::resolvable(stand.fit.refusal)) return 0;
    if (stand.fit.refusal == Refusal::Quota) return 1;
    return stand.fit.refusal == Refusal::Unhealthy ? 2 : 3;
  };
  for (const auto& stand : stands) {
    if (stand.refuses.empty() && (best == nullptr || rank(stand) < rank(*best))) best = &stand;
  }
  return best;
}

void explain(Link& link, const podspec::PodAsk& ask, const Stands& stands,
             const std::string& said) {
  const auto fits = [](const Stand& stand) { return stand.fit.refusal == Refusal::None; };
  const auto kept = std::find_if(stands.begin(), stands.end(), [&](const Stand& stand) {
    return fits(stand) && !stand.refuses.empty();
  });
  const auto open = std::find_if(stands.begin(), stands.end(), [&](const Stand& stand) {
    return fits(stand) && stand.refuses.empty();
  });
  const auto* refused = nearest(stands);
  if (stands.empty()) {
    link.cause = "no node of the cluster shares its GPUs";
    link.remedy = remedy_for(Refusal::NoSharedGpus, stands);
  } else if (open != stands.end()) {
    link.cause = fmt::format("{} has room; the scheduler says: {}", open->view.facts.name, said);
    link.remedy =
        "kubectl describe pod shows its events; does the scheduler ask the extender? kubectl -n "
        "kube-system get pods -l component=gpushare-schd-extender";
  } else if (kept != stands.end()) {
    link.cause = fmt::format("{} has room and keeps this pod away: {}", kept->view.facts.name,
                             kept->refuses);
    link.remedy = kept->remedy;
  } else if (refused != nullptr) {
    link.cause = refusal_words(*refused, ask, stands.size());
    link.remedy = remedy_for(refused->fit.refusal, stands);
  } else {
    link.cause = fmt::format("the nodes that share GPUs keep this pod away: {}: {}",
                             stands.front().view.facts.name, stands.front().refuses);
    link.remedy = stands.front().remedy;
  }
}

}  // namespace

std::vector<Link> stand_links(json::Value pod, const podspec::PodAsk& ask, const Stands& all) {
  Stands stands;
  std::copy_if(all.begin(), all.end(), std::back_inserter(stands),
               [](const Stand& stand) { return !stand.view.cards.empty(); });
  const auto said = condition(pod, "PodScheduled")["message"].string().value_or(
      "the scheduler has not looked at it yet");
  std::vector<Link> links{{.id = "scheduling",
                           .what = "A node was found for it",
                           .verdict = Verdict::Broken,
                           .read = said}};
  explain(links.front(), ask, stands, said);
  // The scheduler's word that others go for its sake.
  if (const auto node = pod["status"]["nominatedNodeName"].string().value_or(""); !node.empty()) {
    links.front().cause += fmt::format("; room is being made for it on node {}", node);
    links.front().remedy =
        "wait until pods of lower priority there have ended; kubectl describe pod names them";
  }
  for (const auto& stand : stands) {
    if (links.size() > kNodes) break;
    links.push_back(node_link(stand, ask));
  }
  if (stands.size() > kNodes)
    links.push_back({.id = "nodes",
                     .what = fmt::format("And {} nodes more", stands.size() - kNodes),
                     .verdict = Verdict::Unknown,
                     .read = "gantry inspect -d shows all"});
  return links;
}

}  // namespace gantry::why
