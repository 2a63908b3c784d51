// SPDX-License-Identifier: Apache-2.0
#include "node/agent/pod_patcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPodPatcherComponent = "slots";
constexpr std::size_t kMaxWaitingPatches = 4096;  // older ones are dropped

}  // namespace

PodPatcher::PodPatcher(kube::ClientConfig access, Log log)
    : api_(std::move(access)),
      log_(std::move(log)),
      task_({.name = "pod patches",
             .retry = {.first = 500ms, .max = 30s},
             .on_error = [this](const Error& error,
                                auto) { log_.detail(1, kPodPatcherComponent, error.text()); }},
            [this](const std::stop_token&) { return work(); }) {
  task_.start();
}

void PodPatcher::tell(pod_shares::PodPatch patch) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(patch));
    if (pending_.size() > kMaxWaitingPatches) pending_.pop_front();
  }
  task_.wake();
}

Status PodPatcher::tell_server(const pod_shares::PodPatch& patch) {
  auto done = api_.patch(kube::pod_path(patch.pod.name_space, patch.pod.name), kube::Patch::Merge,
                         patch.body);
  if (done.ok()) return {};
  const auto& error = done.error();
  switch (error.code()) {
    case Errc::NotFound:           // the pod is gone
    case Errc::Exists: return {};  // another pod has its name now
    case Errc::Denied:
      if (!std::exchange(forbidden_, true))
        log_.warning(
            kPodPatcherComponent,
            fmt::format(
                "cannot write to pod {} that {}: {}. Without that, the scheduler counts such a "
                "pod against every GPU of this node; give the agent permission to patch pods",
                to_string(patch.pod), patch.why, error.text()));
      return {};
    case Errc::Invalid:
      log_.warning(kPodPatcherComponent, fmt::format("{}: {}", to_string(patch.pod), error.text()));
      return {};
    default: return std::move(done).error();
  }
}

Status PodPatcher::work() {
  pod_shares::PodPatch patch;
  {
    const std::lock_guard lock(mutex_);
    if (pending_.empty()) return {};
    patch = std::move(pending_.front());
    pending_.pop_front();
  }
  auto told = tell_server(patch);
  const std::lock_guard lock(mutex_);
  if (!told.ok()) {
    pending_.push_front(std::move(patch));
  } else if (!pending_.empty()) {
    task_.wake();
  }
  return told;
}

}  // namespace gantry::agent
