// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "cluster/scheduler/book_internal.hpp"

#include <fmt/format.h>

#include <functional>

namespace gantry::scheduler {
namespace {

// How long a pod's end is remembered, against a list that was asked for before it.
constexpr auto kEndedFor = std::chrono::minutes(5);

std::string text_of(const json::Value& value) {
  return value.string().value_or("");
}

// Finished pods hold nothing. One that is being deleted does, until it is gone.
bool is_over(const json::Value& pod) {
  const auto phase = text_of(pod["status"]["phase"]);
  return phase == "Succeeded" || phase == "Failed";
}

std::size_t digest_of(const json::Value& pod) {
  const std::hash<std::string_view> hash;
  const auto raw = [](const json::Value& value) {
    return value ? value.raw() : std::string_view();
  };
  std::size_t digest = is_over(pod) ? 1 : 2;
  const auto metadata = pod["metadata"];
  for (const auto part :
       {raw(pod["spec"]), raw(metadata["annotations"]), raw(metadata["labels"]),
        raw(metadata["deletionTimestamp"]), raw(pod["status"]["nominatedNodeName"])}) {
    digest = digest * 1'000'003 + hash(part);
  }
  return digest;
}

std::vector<podspec::CardName> names_of(const placement::NodeView& view) {
  std::vector<podspec::CardName> names;
  names.reserve(view.facts.cards.size());
  for (const auto& card : view.facts.cards) {
    names.push_back({.index = card.index, .uuid = card.uuid});
  }
  return names;
}

bool names_its_cards(const json::Value& pod) {
  return static_cast<bool>(pod["metadata"]["annotations"][podspec::kPlacement]);
}

// What a Binding gave to a pod that asks for something else by now: who edits annotations while it
// is on its way would otherwise hold every card of the node. It does not start there.
std::optional<podspec::Placement> as_written(const json::Value& pod) {
  const auto text = pod["metadata"]["annotations"][podspec::kPlacement].string();
  if (!text) return std::nullopt;
  auto placement = podspec::placement_from(*text);
  if (!placement.ok()) return std::nullopt;
  return *std::move(placement);
}

// A kubelet's own: what the API server has is its picture, whose end ends nothing.
bool is_static(const json::Value& pod) {
  return static_cast<bool>(pod["metadata"]["annotations"]["kubernetes.io/config.mirror"]);
}

}  // namespace

Status Book::set_node(const json::Value& node) {
  const auto name = text_of(node["metadata"]["name"]);
  if (name.empty()) return Error(Errc::Corrupt, "a node without a name");
  auto facts = podspec::node_of(node);
  const std::lock_guard hold(mutex_);
  if (!facts.ok()) {
    cluster_.set_node({.name = name});
    ++generation_;
    return std::move(facts).error().in(fmt::format("node {}", name));
  }
  facts->name = name;
  bar(*facts);
  const auto before = cluster_.view(name).facts;
  if (before == *facts) return {};
  cluster_.set_node(*facts);
  ++generation_;
  if (before.cards != facts->cards || before.unit_mib != facts->unit_mib) place_again(name);
  return {};
}

void Book::remove_node(std::string_view name) {
  const std::lock_guard hold(mutex_);
  cluster_.remove_node(name);
  ++generation_;
}

// Those that gpushare's or HAMi's own scheduler put there, by numbers that mean cards only now.
void Book::place_again(std::string_view node) {
  const auto found = by_number_.find(std::string(node));
  if (found == by_number_.end()) return;
  const auto uids = std::move(found->second);
  by_number_.erase(found);  // those that are still there come back by being counted
  for (const auto& uid : uids) {
    const auto known = known_.find(uid);
    if (known == known_.end() || !known->second.text) continue;
    const auto pod = json::Document::parse(*known->second.text);
    if (pod.ok()) (void)count(pod->root(), known->second);
  }
}

Status Book::set_pod(const json::Value& pod, Moment now) {
  const auto uid = text_of(pod["metadata"]["uid"]);
  const auto version = parse_u64(text_of(pod["metadata"]["resourceVersion"])).value_or(0);
  const auto digest = digest_of(pod);
  const std::lock_guard hold(mutex_);
  if (ended_.contains(uid)) return {};
  const auto found = known_.find(uid);
  if (found != known_.end()) {
    if (version < found->second.version && version != 0) return {};
    found->second.version = version;
    if (found->second.digest == digest) return {};
    found->second.digest = digest;
  }
  if (is_over(pod)) {
    const bool was_known = found != known_.end() || held_.contains(uid);
    forget(uid, now);
    if (was_known) remember_end(uid, now);
    return {};
  }
  // Annotations can be edited by whoever owns the pod; what it was given stays given.
  if (found != known_.end() && found->second.placed) {
    note_end(pod, uid, found->second);
    keep_nominated(found->second.node, now);
    return {};
  }
  const auto node = text_of(pod["spec"]["nodeName"]);
  auto asked = node.empty() ? podspec::ask_of(pod) : podspec::amounts_of(pod);
  if (!asked.ok() || !*asked) {
    if (found != known_.end() && !found->second.counted) forget(uid, now);
    if (asked.ok()) return {};
    return std::move(asked).error();
  }
  auto& known = known_[uid];
  known.name_space = (*asked)->name_space;
  known.name = (*asked)->name;
  known.version = version;
  known.digest = digest;
  known.node = node;
  known.priority = (*asked)->priority;
  if (!known.node.empty()) {
    nominate(uid, known, "", now);
    auto counted = count(pod, known);
    note_end(pod, uid, known);
    return counted;
  }
  known.ask = std::make_unique<podspec::PodAsk>(**std::move(asked));
  nominate(uid, known, text_of(pod["status"]["nominatedNodeName"]), now);
  return {};
}

// A pod that has a node.
Status Book::count(const json::Value& pod, Known& known) {
  GANTRY_TRY(const auto asked, podspec::amounts_of(pod));
  if (!asked) return {};
  const auto view = cluster_.view(known.node);
  auto placement = podspec::placement_of(pod, *asked, names_of(view), view.facts.unit_mib);
  const auto where = placement.ok() ? *placement : as_written(pod);
  const bool placed = where.has_value();
  cluster_.set_pod(*asked, known.node, placed ? &*where : nullptr);
  ++generation_;
  held_.erase(asked->uid);
  keeps_.erase(asked->uid);
  known.counted = true;
  known.placed = placed;
  known.is_static = is_static(pod);
  known.evictable = placed && names_its_cards(pod) && !known.is_static;
  known.ask.reset();
  if (names_its_cards(pod)) {
    known.text.reset();
  } else {
    known.text = std::make_unique<std::string>(pod.raw());
    by_number_[known.node].insert(asked->uid);
  }
  if (!placement.ok() && !view.facts.cards.empty()) {  // else when the node is known
    return std::move(placement).error().in(fmt::format("pod {}/{}", known.name_space, known.name));
  }
  return {};
}

// It holds nothing any more.
void Book::forget(std::string_view uid, Moment now) {
  const std::string key(uid);
  bool holds = held_.erase(key) != 0;
  holds = keeps_.erase(key) != 0 || holds;
  std::string node;
  if (const auto found = known_.find(key); found != known_.end()) {
    nominate(key, found->second, "", now);
    holds = found->second.counted || holds;
    node = std::move(found->second.node);
    known_.erase(found);
  }
  for (auto* by_node : {&going_, &by_number_}) {
    const auto there = by_node->find(node);
    if (there == by_node->end()) continue;
    there->second.erase(key);
    if (there->second.empty()) by_node->erase(there);
  }
  if (!holds) return;
  cluster_.remove_pod(uid);
  ++generation_;
  keep_nominated(node, now);
}

void Book::remove_pod(std::string_view uid, Moment now) {
  const std::lock_guard hold(mutex_);
  forget(uid, now);
  remember_end(uid, now);
}

void Book::remember_end(std::string_view uid, Moment now) {
  while (!ended_order_.empty() && now - ended_order_.front().when > kEndedFor) {
    ended_.erase(ended_order_.front().uid);
    ended_order_.pop_front();
  }
  if (!ended_.emplace(uid).second) return;
  ended_order_.push_back({.uid = std::string(uid), .when = now});
}

}  // namespace gantry::scheduler
