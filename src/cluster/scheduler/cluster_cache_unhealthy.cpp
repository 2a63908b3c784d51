// SPDX-License-Identifier: Apache-2.0
// Cards that a ConfigMap marks as unhealthy: stored in the node's facts, so that questions need no
// extra lookup.
#include "cluster/scheduler/cluster_cache.hpp"

#include <algorithm>
#include <utility>

namespace gantry::scheduler {

Status ClusterCache::set_unhealthy_gpus(const json::Value& config_map) {
  auto marked_unhealthy = podspec::parse_unhealthy_gpus(config_map);
  if (!marked_unhealthy) return {};
  const std::lock_guard hold(mutex_);
  unhealthy_[marked_unhealthy->node] = std::move(marked_unhealthy->gpus);
  reapply_unhealthy(marked_unhealthy->node);
  if (marked_unhealthy->ignored.empty()) return {};
  return Error(Errc::Corrupt, std::move(marked_unhealthy->ignored));
}

void ClusterCache::remove_unhealthy_gpus(std::string_view config_map) {
  const std::string node(podspec::node_of_unhealthy_config_map(config_map));
  const std::lock_guard hold(mutex_);
  if (unhealthy_.erase(node) != 0) reapply_unhealthy(node);
}

void ClusterCache::mark_unhealthy(podspec::NodeInfo& facts) const {
  const auto found = unhealthy_.find(facts.name);
  for (auto& card : facts.cards)
    card.marked_unhealthy =
        found != unhealthy_.end() &&
        std::binary_search(found->second.begin(), found->second.end(), card.index);
}

void ClusterCache::reapply_unhealthy(const std::string& node) {
  const auto before = cluster_.view(node).facts;
  auto facts = before;
  mark_unhealthy(facts);
  if (facts == before) return;
  cluster_.set_node(facts);
  ++generation_;
}

}  // namespace gantry::scheduler
