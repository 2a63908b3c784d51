// SPDX-License-Identifier: Apache-2.0
// Cards that a ConfigMap bars: a mark in the node's facts, so that no question has to look for it.
#include "cluster/scheduler/book.hpp"

#include <algorithm>
#include <utility>

namespace gantry::scheduler {

Status Book::set_barred(const json::Value& config_map) {
  auto barred = podspec::barred_of(config_map);
  if (!barred) return {};
  const std::lock_guard hold(mutex_);
  barred_[barred->node] = std::move(barred->gpus);
  bar_again(barred->node);
  if (barred->ignored.empty()) return {};
  return Error(Errc::Corrupt, std::move(barred->ignored));
}

void Book::remove_barred(std::string_view config_map) {
  const std::string node(podspec::node_barred_by(config_map));
  const std::lock_guard hold(mutex_);
  if (barred_.erase(node) != 0) bar_again(node);
}

void Book::bar(podspec::NodeFacts& facts) const {
  const auto found = barred_.find(facts.name);
  for (auto& card : facts.cards)
    card.barred = found != barred_.end() &&
                  std::binary_search(found->second.begin(), found->second.end(), card.index);
}

void Book::bar_again(const std::string& node) {
  const auto before = cluster_.view(node).facts;
  auto facts = before;
  bar(facts);
  if (facts == before) return;
  cluster_.set_node(facts);
  ++generation_;
}

}  // namespace gantry::scheduler
