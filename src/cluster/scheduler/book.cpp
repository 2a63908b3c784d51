// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/book.hpp"

#include "cluster/scheduler/book_internal.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::scheduler {

Book::Book(placement::Options options) : cluster_(options) {}
Book::~Book() = default;

std::uint64_t Book::generation() const {
  const std::lock_guard hold(mutex_);
  return generation_;
}

std::uint64_t Book::fit(const podspec::PodAsk& ask, std::span<const std::string_view> nodes,
                        std::vector<placement::Fit>& fits) const {
  const std::lock_guard hold(mutex_);
  cluster_.fit_all(ask, nodes, fits);
  return generation_;
}

Result<std::vector<std::string>> Book::victims(const podspec::PodAsk& ask, std::string_view node,
                                               std::span<const std::string> chosen) const {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> gone(chosen.begin(), chosen.end());
  std::unordered_set<std::string> besides;  // whoever is being deleted goes without being asked
  if (const auto there = going_.find(std::string(node)); there != going_.end())
    besides = there->second;
  for (const auto& uid : chosen) besides.erase(uid);
  gone.insert(gone.end(), besides.begin(), besides.end());
  GANTRY_TRY(auto all, cluster_.victims(ask, node, gone, [this](std::string_view uid) {
    const auto known = known_.find(std::string(uid));
    return known != known_.end() && known->second.is_static;
  }));
  std::erase_if(all, [&](const std::string& uid) { return besides.contains(uid); });
  return all;
}

placement::NodeView Book::view(std::string_view node) const {
  const std::lock_guard hold(mutex_);
  return cluster_.view(node);
}

std::vector<std::string> Book::nodes() const {
  const std::lock_guard hold(mutex_);
  return cluster_.nodes();
}

std::optional<podspec::PodAsk> Book::pending(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = known_.find(std::string(uid));
  if (found == known_.end() || !found->second.ask) return std::nullopt;
  return *found->second.ask;
}

std::size_t Book::pods() const {
  const std::lock_guard hold(mutex_);
  std::size_t count = held_.size();
  for (const auto& [uid, known] : known_) count += known.counted ? 1 : 0;
  return count;
}

// ---- promises

std::optional<std::string> Book::unsettled_node(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = held_.find(std::string(uid));
  if (found == held_.end() || found->second.promise.state != Promise::State::Unknown)
    return std::nullopt;
  return found->second.promise.node;
}

Result<Decision> Book::promise(const podspec::PodAsk& ask, std::string_view node,
                               std::int64_t unix_ns, Moment now) {
  const std::lock_guard hold(mutex_);
  if (const auto found = held_.find(ask.uid); found != held_.end()) {
    auto& [promise, decision] = found->second;
    if (promise.node != node) {
      return Error(Errc::Busy,
                   fmt::format("a Binding of this pod to node {} was sent before, and whether it "
                               "was taken is not known yet; try again in a few seconds",
                               promise.node));
    }
    if (promise.state == Promise::State::Sending)
      return Error(Errc::Busy, "a Binding of this pod to this node is under way");
    promise.state = Promise::State::Sending;
    promise.since = now;
    decision.again = true;  // word for word, so that whichever comes through is this one
    return decision;
  }
  GANTRY_TRY(auto placement, cluster_.reserve(ask, node));
  ++generation_;
  auto decision = decision_of(ask, node, std::move(placement), unix_ns);
  held_[ask.uid] = {.promise = {.uid = ask.uid,
                                .name_space = ask.name_space,
                                .name = ask.name,
                                .node = std::string(node),
                                .state = Promise::State::Sending,
                                .since = now},
                    .decision = decision};
  return decision;
}

Decision Book::decision_of(const podspec::PodAsk& ask, std::string_view node,
                           podspec::Placement placement, std::int64_t unix_ns) const {
  if (placement.empty()) return {};  // the kubelet hands out whole GPUs
  const auto view = cluster_.view(node);
  podspec::AnnotationFacts facts{
      .node = std::string(node), .unit_mib = view.facts.unit_mib, .unix_ns = unix_ns};
  for (const auto& card : view.facts.cards) {
    facts.card_mib[card.uuid] = card.mib;
    facts.model[card.uuid] = card.model;
  }
  auto annotations = podspec::annotations(ask, placement, facts);
  return {.placement = std::move(placement), .annotations = std::move(annotations)};
}

void Book::mark(std::string_view uid, Promise::State state, Moment now) {
  const std::lock_guard hold(mutex_);
  const auto found = held_.find(std::string(uid));
  if (found == held_.end()) return;  // the watch was faster
  found->second.promise.state = state;
  found->second.promise.since = now;
}

void Book::release(std::string_view uid) {
  const std::lock_guard hold(mutex_);
  release_held(std::string(uid));
}

// The same Binding may be on its way once more by now.
void Book::release(const Promise& seen) {
  const std::lock_guard hold(mutex_);
  const auto found = held_.find(seen.uid);
  if (found == held_.end()) return;
  const auto& now = found->second.promise;
  if (now.state == seen.state && now.since == seen.since) release_held(seen.uid);
}

void Book::release_held(const std::string& uid) {
  if (held_.erase(uid) == 0) return;
  cluster_.release(uid);
  ++generation_;
  const auto kept = keeps_.find(uid);
  if (kept == keeps_.end()) return;  // else the room is for it all the same
  if (!cluster_.keep(kept->second.ask, kept->second.kept.node, kept->second.kept.awaited).ok())
    keeps_.erase(kept);
}

std::vector<Promise> Book::promises() const {
  const std::lock_guard hold(mutex_);
  std::vector<Promise> all;
  all.reserve(held_.size());
  for (const auto& [uid, held] : held_) all.push_back(held.promise);
  return all;
}

}  // namespace gantry::scheduler
