// SPDX-License-Identifier: Apache-2.0
#include "node/agent/pod_patcher.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPodPatcherComponent = "slots";
constexpr std::size_t kMaxWaitingPatches = 4096;  // older ones are dropped

}  // namespace

PodPatcher::PodPatcher(kube::ClientConfig access, Log log, std::chrono::milliseconds first_pause)
    : api_(std::move(access)),
      log_(std::move(log)),
      task_({.name = "pod patches",
             .retry = {.first = first_pause, .max = 30s},
             .on_error =
                 [this](const Error& error, auto) {
                   log_.detail(1, kPodPatcherComponent, "cannot patch a pod, trying again",
                               {{"err", error}});
                 }},
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
            "cannot write to a pod; the scheduler counts it against every GPU of this node",
            {{"pod", to_string(patch.pod)},
             {"patch", patch.why},
             {"err", error.text()},
             {"remedy", "give the agent permission to patch pods"}});
      return {};
    case Errc::Invalid:
      log_.warning(kPodPatcherComponent, "the API server rejected a patch",
                   {{"pod", to_string(patch.pod)}, {"err", error}});
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
