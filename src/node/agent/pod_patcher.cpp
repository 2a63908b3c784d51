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
    : api_(std::move(access)), log_(std::move(log)), thread_([this] { work(); }) {}

PodPatcher::~PodPatcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void PodPatcher::tell(pod_shares::PodPatch patch) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(patch));
  if (pending_.size() > kMaxWaitingPatches) pending_.pop_front();
  wake_.notify_one();
}

bool PodPatcher::told(const pod_shares::PodPatch& patch) {
  const auto done = api_.patch(kube::pod_path(patch.pod.name_space, patch.pod.name),
                               kube::Patch::Merge, patch.body);
  if (done.ok()) return true;
  const auto& error = done.error();
  switch (error.code()) {
    case Errc::NotFound:             // the pod is gone
    case Errc::Exists: return true;  // another pod has its name now
    case Errc::Denied:
      if (!std::exchange(forbidden_, true))
        log_.warning(
            kPodPatcherComponent,
            fmt::format(
                "cannot write to pod {} that {}: {}. Without that, the scheduler counts such a "
                "pod against every GPU of this node; give the agent permission to patch pods",
                to_string(patch.pod), patch.why, error.text()));
      return true;
    case Errc::Invalid:
      log_.warning(kPodPatcherComponent, fmt::format("{}: {}", to_string(patch.pod), error.text()));
      return true;
    default: log_.detail(1, kPodPatcherComponent, error.text()); return false;
  }
}

void PodPatcher::work() {
  auto pause = 500ms;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !pending_.empty(); });
    if (ending_) return;
    const auto patch = pending_.front();
    pending_.pop_front();
    lock.unlock();
    const bool done = told(patch);
    lock.lock();
    if (done) {
      pause = 500ms;
      continue;
    }
    pending_.push_front(patch);
    wake_.wait_for(lock, pause, [this] { return ending_; });
    pause = std::min<std::chrono::milliseconds>(pause * 2, 30s);
  }
}

}  // namespace gantry::agent
