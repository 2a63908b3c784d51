// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/scheduler/cluster_cache_internal.hpp"

#include <fmt/format.h>

#include <functional>

namespace gantry::scheduler {
namespace {

// How long the end of a pod is remembered, because of lists that were requested earlier.
constexpr auto kEndedFor = std::chrono::minutes(5);

std::size_t digest_of(const json::Value& pod) {
  const std::hash<std::string_view> hash;
  const auto raw = [](const json::Value& value) {
    return value ? value.raw() : std::string_view();
  };
  std::size_t digest = podspec::is_finished(pod) ? 1 : 2;
  const auto metadata = pod["metadata"];
  for (const auto part :
       {raw(pod["spec"]), raw(metadata["annotations"]), raw(metadata["labels"]),
        raw(metadata["deletionTimestamp"]), raw(pod["status"]["nominatedNodeName"])}) {
    digest = digest * 1'000'003 + hash(part);
  }
  return digest;
}

std::vector<podspec::CardId> card_ids(const placement::NodeView& view) {
  std::vector<podspec::CardId> names;
  names.reserve(view.facts.cards.size());
  for (const auto& card : view.facts.cards) {
    names.push_back({.index = card.index, .uuid = card.uuid});
  }
  return names;
}

bool names_its_cards(const json::Value& pod) {
  return static_cast<bool>(pod["metadata"]["annotations"][podspec::kPlacementAnnotation]);
}

// The placement of a pod whose request no longer matches it, because its annotations were edited
// while the Binding was in progress. Without this, the pod would hold every card of the node. It
// does not start there.
std::optional<podspec::Placement> as_written(const json::Value& pod) {
  const auto text = pod["metadata"]["annotations"][podspec::kPlacementAnnotation].string();
  if (!text) return std::nullopt;
  auto placement = podspec::parse_placement(*text);
  if (!placement.ok()) return std::nullopt;
  return *std::move(placement);
}

// A static pod of a kubelet: the API server has only a mirror of it, and deleting the mirror does
// not end the pod.
bool is_static(const json::Value& pod) {
  return static_cast<bool>(pod["metadata"]["annotations"]["kubernetes.io/config.mirror"]);
}

}  // namespace

Status ClusterCache::set_node(const json::Value& node) {
  const auto name = node["metadata"]["name"].string_or_empty();
  if (name.empty()) return Error(Errc::Corrupt, "the node has no name");
  auto facts = podspec::parse_node(node);
  const std::lock_guard hold(mutex_);
  if (!facts.ok()) {
    cluster_.set_node({.name = name});
    ++generation_;
    return std::move(facts).error().in(fmt::format("node {}", name));
  }
  facts->name = name;
  mark_unhealthy(*facts);
  const auto before = cluster_.view(name).facts;
  if (before == *facts) return {};
  cluster_.set_node(*facts);
  ++generation_;
  if (before.cards != facts->cards || before.unit_mib != facts->unit_mib)
    recompute_placements(name);
  return {};
}

void ClusterCache::remove_node(std::string_view name) {
  const std::lock_guard hold(mutex_);
  cluster_.remove_node(name);
  ++generation_;
}

// Pods that gpushare's or HAMi's own scheduler placed with card indexes, which are known only now.
void ClusterCache::recompute_placements(std::string_view node) {
  const auto found = placed_by_index_.find(std::string(node));
  if (found == placed_by_index_.end()) return;
  const auto uids = std::move(found->second);
  placed_by_index_.erase(found);  // pods that are still there are added again when they are counted
  for (const auto& uid : uids) {
    const auto known = pods_.find(uid);
    if (known == pods_.end() || !known->second.text) continue;
    const auto pod = json::Document::parse(*known->second.text);
    if (pod.ok()) (void)count(pod->root(), known->second);
  }
}

Status ClusterCache::set_pod(const json::Value& pod, TimePoint now) {
  const auto uid = pod["metadata"]["uid"].string_or_empty();
  const auto version = parse_u64(pod["metadata"]["resourceVersion"].string_or_empty()).value_or(0);
  const auto digest = digest_of(pod);
  const std::lock_guard hold(mutex_);
  if (ended_.contains(uid)) return {};
  const auto found = pods_.find(uid);
  if (found != pods_.end()) {
    if (version < found->second.version && version != 0) return {};
    found->second.version = version;
    if (found->second.digest == digest) return {};
    found->second.digest = digest;
  }
  if (podspec::is_finished(pod)) {
    const bool was_known = found != pods_.end() || assumed_.contains(uid);
    forget(uid, now);
    if (was_known) remember_ended(uid, now);
    return {};
  }
  // The owner of a pod can edit its annotations; the pod keeps the cards that it got.
  if (found != pods_.end() && found->second.placed) {
    note_deletion(pod, uid, found->second);
    renew_nominations(found->second.node, now);
    return {};
  }
  const auto node = pod["spec"]["nodeName"].string_or_empty();
  auto asked = node.empty() ? podspec::parse_request(pod) : podspec::parse_amounts(pod);
  if (!asked.ok() || !*asked) {
    if (found != pods_.end() && !found->second.counted) forget(uid, now);
    if (asked.ok()) return {};
    return std::move(asked).error();
  }
  auto& known = pods_[uid];
  known.name_space = (*asked)->pod.name_space;
  known.name = (*asked)->pod.name;
  known.version = version;
  known.digest = digest;
  known.node = node;
  known.priority = (*asked)->priority;
  if (!known.node.empty()) {
    nominate(uid, known, "", now);
    auto counted = count(pod, known);
    note_deletion(pod, uid, known);
    return counted;
  }
  known.ask = std::make_unique<podspec::PodRequest>(**std::move(asked));
  nominate(uid, known, pod["status"]["nominatedNodeName"].string_or_empty(), now);
  return {};
}

// Counts a pod that has a node.
Status ClusterCache::count(const json::Value& pod, PodRecord& known) {
  GANTRY_TRY(const auto asked, podspec::parse_amounts(pod));
  if (!asked) return {};
  const auto view = cluster_.view(known.node);
  auto placement = podspec::read_placement(pod, *asked, card_ids(view), view.facts.unit_mib);
  const auto where = placement.ok() ? *placement : as_written(pod);
  const bool placed = where.has_value();
  cluster_.set_pod(*asked, known.node, placed ? &*where : nullptr);
  ++generation_;
  assumed_.erase(asked->pod.uid);
  nominations_.erase(asked->pod.uid);
  known.counted = true;
  known.placed = placed;
  known.is_static = is_static(pod);
  known.evictable = placed && names_its_cards(pod) && !known.is_static;
  known.ask.reset();
  if (names_its_cards(pod)) {
    known.text.reset();
  } else {
    known.text = std::make_unique<std::string>(pod.raw());
    placed_by_index_[known.node].insert(asked->pod.uid);
  }
  if (!placement.ok() && !view.facts.cards.empty()) {  // otherwise when the node is known
    return std::move(placement).error().in(fmt::format("pod {}/{}", known.name_space, known.name));
  }
  return {};
}

// The pod holds nothing any more.
void ClusterCache::forget(std::string_view uid, TimePoint now) {
  const std::string key(uid);
  bool holds = assumed_.erase(key) != 0;
  holds = nominations_.erase(key) != 0 || holds;
  std::string node;
  if (const auto found = pods_.find(key); found != pods_.end()) {
    nominate(key, found->second, "", now);
    holds = found->second.counted || holds;
    node = std::move(found->second.node);
    pods_.erase(found);
  }
  for (auto* by_node : {&terminating_, &placed_by_index_}) {
    const auto there = by_node->find(node);
    if (there == by_node->end()) continue;
    there->second.erase(key);
    if (there->second.empty()) by_node->erase(there);
  }
  if (!holds) return;
  cluster_.remove_pod(uid);
  ++generation_;
  renew_nominations(node, now);
}

void ClusterCache::remove_pod(std::string_view uid, TimePoint now) {
  const std::lock_guard hold(mutex_);
  forget(uid, now);
  remember_ended(uid, now);
}

void ClusterCache::remember_ended(std::string_view uid, TimePoint now) {
  while (!ended_order_.empty() && now - ended_order_.front().when > kEndedFor) {
    ended_.erase(ended_order_.front().uid);
    ended_order_.pop_front();
  }
  if (!ended_.emplace(uid).second) return;
  ended_order_.push_back({.uid = std::string(uid), .when = now});
}

}  // namespace gantry::scheduler
