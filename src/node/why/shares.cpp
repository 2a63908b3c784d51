// SPDX-License-Identifier: Apache-2.0
// What a pod asks of shared GPUs, and what it was given.
#include "node/why/shares.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::why {
namespace {

std::string words_of(const podspec::Amount& memory) {
  switch (memory.kind) {
    case podspec::Amount::Kind::Units:
      return fmt::format("{} of {}", memory.value, podspec::kGpuMem);
    case podspec::Amount::Kind::MiB: return fmt::format("{} MiB", memory.value);
    case podspec::Amount::Kind::Percent: break;
  }
  return fmt::format("{} % of the memory", memory.value);
}

std::string words_of(const podspec::ContainerAsk& container) {
  auto text = fmt::format("{}: {}", container.container, words_of(container.memory));
  if (container.gpus > 1) text += fmt::format(" of each of {} GPUs", container.gpus);
  if (container.cores == 100) return text + ", with nobody else on it";
  if (container.cores > 0) text += fmt::format(", {} % of the time", container.cores);
  return text;
}

std::string words_of(const podspec::ContainerPlacement& container) {
  std::vector<std::string> parts;
  for (const auto& part : container.parts) {
    parts.push_back(fmt::format("GPU{} ({}) {} MiB", part.index, part.uuid, part.mib));
    if (part.cores > 0) parts.back() += fmt::format(", {} % of its time", part.cores);
  }
  return fmt::format("{}: {}", container.container, fmt::join(parts, " and "));
}

template <class List>
std::string words_of_all(const List& list) {
  std::vector<std::string> all;
  for (const auto& one : list) all.push_back(words_of(one));
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

std::string words_of(const podspec::PodAsk& ask) {
  return words_of_all(ask.containers);
}

Link ask_link(const Result<std::optional<podspec::PodAsk>>& ask) {
  Link link{.id = "spec.share", .what = "The pod asks for a share of a GPU"};
  if (ask.ok() && *ask) {
    link.read = words_of(**ask);
    return link;
  }
  if (ask.ok()) return link;
  link.verdict = Verdict::Broken;
  // "what is wrong; what to write instead"
  const auto& text = ask.error().text();
  const auto cut = text.find("; ");
  link.cause = text.substr(0, cut);
  link.read = link.cause;
  link.remedy = cut == std::string::npos ? "gantry's docs/scheduling.md has what a pod can ask"
                                         : text.substr(cut + 2);
  return link;
}

Link placement_link(json::Value pod, const podspec::PodAsk& ask, const placement::NodeView& view) {
  Link link{.id = "share.placement", .what = "GPUs were chosen for it"};
  std::vector<podspec::CardName> cards;
  for (const auto& card : view.facts.cards)
    cards.push_back({.index = card.index, .uuid = card.uuid});
  const auto placement = podspec::placement_of(pod, ask, cards, view.facts.unit_mib);
  if (!placement.ok()) {
    link.verdict = Verdict::Broken;
    link.cause = fmt::format("its annotation {} cannot be read: {}", podspec::kPlacement,
                             placement.error().text());
    link.remedy = "delete the pod: its successor is placed anew";
  } else if (!*placement) {
    link.verdict = Verdict::Doubtful;
    link.read = fmt::format("no {} annotation", podspec::kPlacement);
    link.cause =
        "the pod came to its node without a GPU, by another scheduler or by hand: the node's agent "
        "chooses one when a container starts, and until then its amount is kept free on every card";
    link.remedy =
        "let a scheduler place it that asks the extender: no spec.nodeName in the pod, and "
        "spec.schedulerName one that deploy/gpushare configures";
  } else {
    link.read = words_of_all(**placement);
  }
  return link;
}

}  // namespace gantry::why
