// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/book.hpp"

#include "cluster/podspec/ask.hpp"

namespace gantry::pod_shares {
namespace {

// What asks in words that mean nothing asks all the same: it is told so when it starts.
bool asks(const json::Document& pod) {
  const auto ask = podspec::ask_of(pod.root());
  return !ask.ok() || ask->has_value();
}

bool is_over(const json::Document& pod) {
  const auto phase = pod["status"]["phase"].string();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

void Book::set(const json::Document& pod) {
  const auto uid = pod["metadata"]["uid"].string().value_or("");
  const bool counts = !uid.empty() && asks(pod) && !is_over(pod);
  const std::lock_guard hold(mutex_);
  if (counts) {
    pods_.insert_or_assign(uid, pod.text());
  } else {
    pods_.erase(uid);
  }
}

void Book::remove(const kube::ObjectRef& pod) {
  const std::lock_guard hold(mutex_);
  pods_.erase(pod.uid);
}

void Book::listed() {
  const std::lock_guard hold(mutex_);
  complete_ = true;
}

void Book::trouble(const Error& error, std::chrono::milliseconds again_in) {
  if (trouble_) trouble_(error, again_in);
}

std::optional<std::string> Book::find(const std::string& uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> Book::all() const {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> pods;
  pods.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) pods.push_back(pod);
  return pods;
}

bool Book::complete() const {
  const std::lock_guard hold(mutex_);
  return complete_;
}

}  // namespace gantry::pod_shares
