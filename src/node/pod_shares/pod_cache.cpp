// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/pod_cache.hpp"

#include "cluster/podspec/request.hpp"

namespace gantry::pod_shares {
namespace {

// A pod with an invalid request also counts: it gets the error when it starts.
bool asks(const json::Document& pod) {
  const auto ask = podspec::parse_request(pod.root());
  return !ask.ok() || ask->has_value();
}

}  // namespace

void PodCache::set(const json::Document& pod) {
  const auto uid = pod["metadata"]["uid"].string().value_or("");
  const bool counts = !uid.empty() && asks(pod) && !podspec::is_finished(pod.root());
  const std::lock_guard hold(mutex_);
  if (counts) {
    pods_.insert_or_assign(uid, pod.text());
  } else {
    pods_.erase(uid);
  }
}

void PodCache::remove(const ObjectRef& pod) {
  const std::lock_guard hold(mutex_);
  pods_.erase(pod.uid);
}

void PodCache::listed() {
  const std::lock_guard hold(mutex_);
  complete_ = true;
}

void PodCache::on_error(const Error& error, std::chrono::milliseconds retry_in) {
  if (trouble_) trouble_(error, retry_in);
}

std::optional<std::string> PodCache::find(const std::string& uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> PodCache::all() const {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> pods;
  pods.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) pods.push_back(pod);
  return pods;
}

bool PodCache::complete() const {
  const std::lock_guard hold(mutex_);
  return complete_;
}

}  // namespace gantry::pod_shares
