// SPDX-License-Identifier: Apache-2.0
#include "node/agent/pod_shares.hpp"

#include "base/core/unix_time.hpp"
#include "net/kube/pages.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kSlotsComponent = "slots";
constexpr auto kApiPatience = 5s;  // the kubelet waits thirty seconds

std::string pods_of(const std::string& node) {
  return fmt::format("/api/v1/pods?fieldSelector={}",
                     kube::percent_encode(fmt::format("spec.nodeName={}", node)));
}

}  // namespace

pod_shares::ContainerStart container_start(
    const kubelet::Checkpoint& checkpoint, const std::vector<model::DeviceAllocation>& holders,
    const std::function<bool(const std::string& resource)>& is_slots) {
  pod_shares::ContainerStart start;
  for (const auto& holder : holders) {
    start.pod = holder.pod;
    pod_shares::StartingContainer container{.name = holder.container};
    for (const auto& entry : checkpoint.holders) {
      if (entry.pod.uid == holder.pod.uid && entry.container == holder.container &&
          is_slots(entry.resource))
        container.ids[entry.resource] = entry.ids;
    }
    start.containers.push_back(std::move(container));
  }
  return start;
}

PodShares::PodShares(sys::Loop& loop, const sys::Host& host, Options options, const Log& log)
    : loop_(loop),
      host_(host),
      options_(std::move(options)),
      log_(log),
      pods_([this](const Error& error, std::chrono::milliseconds retry_in) {
        log_.warning(kSlotsComponent, "cannot read the pods of this node, trying again",
                     {{"err", error}, {"retry_s", retry_in.count() / 1000}});
      }),
      provisioner_({.host = host_,
                    .share_daemon = options_.share_daemon,
                    .spec = [this] { return options_.spec(host_); },
                    .pod = [this](const std::string& uid) { return pod(uid); },
                    .pods = [this] { return pods_.all(); },
                    .unix_ns = unix_ns,
                    .note = [this](const pod_shares::ShareNote& note) { report(note); }}) {
  if (!options_.access) return;
  api_.emplace(*options_.access, kApiPatience);
  patcher_ = std::make_unique<PodPatcher>(*options_.access, log_);
  informer_ = std::make_unique<kube::Informer>(
      *options_.access,
      kube::InformerOptions{.path = "/api/v1/pods",
                            .field_selector = fmt::format("spec.nodeName={}", options_.node)},
      pods_);
}

PodShares::~PodShares() {
  *here_ = false;
}

// Logs each note once: the provisioner tries again and again.
void PodShares::report(const pod_shares::ShareNote& note) {
  constexpr std::size_t kMostReported = 1000;
  if (reported_.size() > kMostReported) reported_.clear();
  if (!reported_.insert(note).second) return;
  using enum pod_shares::ShareNote::Kind;
  switch (note.what) {
    case Placed:
      return log_.info(kSlotsComponent, "pod had no placement, this agent chose its GPU",
                       {{"pod", to_string(note.pod)}});
    case Removed:
      return log_.info(kSlotsComponent, "removed a share",
                       {{"pod_uid", note.pod.uid}, {"container", note.container}});
    case NotRemoved:
      return log_.warning(
          kSlotsComponent, "cannot remove a share",
          {{"pod_uid", note.pod.uid}, {"container", note.container}, {"err", note.error}});
  }
}

void PodShares::set_machine(pod_shares::NodeSnapshot machine) {
  const std::lock_guard hold(mutex_);
  machine_ = std::move(machine);
}

pod_shares::NodeSnapshot PodShares::machine() const {
  const std::lock_guard hold(mutex_);
  return machine_;
}

// The watch may be slightly behind the kubelet's own.
Result<std::string> PodShares::pod(const std::string& uid) {
  if (auto known = pods_.find(uid)) return *std::move(known);
  if (!api_) {
    return Error(Errc::Busy,
                 "the agent cannot read the pod, which names its GPU: it has no API server; give "
                 "the agent a --kubeconfig, or run it as a pod of the cluster");
  }
  // The worker does one thing after the other: containers that have their share already must not
  // wait for each pod that cannot be read.
  if (Clock::now() < ask_again_) {
    return Error(Errc::Busy,
                 "the agent cannot read the pod, which names its GPU: the API server did not "
                 "answer in time; the agent asks again in a few seconds");
  }
  auto read = read_pod(uid);
  if (!read.ok() && read.error().code() == Errc::Timeout) {
    ask_again_ = Clock::now() + kApiPatience;
    return Error(Errc::Busy, read.error().text());
  }
  return read;
}

Result<std::string> PodShares::read_pod(const std::string& uid) {
  std::string found;
  const auto read = kube::each_page(*api_, pods_of(options_.node), [&](json::Value list) {
    for (const auto item : list["items"]) {
      if (item["metadata"]["uid"].string() == uid) found = std::string(item.raw());
    }
  });
  if (!read.ok()) {
    const bool late = read.error().code() == Errc::Timeout;
    return Error(
        late ? Errc::Timeout : Errc::Busy,
        fmt::format("the agent cannot read the pod, which names its GPU: {}", read.error().text()));
  }
  if (!found.empty()) return found;
  return Error(Errc::Busy, fmt::format("the API server has no pod {} on node {}: the pod was "
                                       "deleted, or --node-name is not the name of this node",
                                       uid, options_.node));
}

void PodShares::fill(pod_shares::ContainerStart start, kubelet::PreStartRequest question) {
  const auto number = ++questions_;
  waiting_.emplace(number, std::move(question));
  worker_.give([this, number, start = std::move(start)] { fill_now(start, number); });
}

void PodShares::fill_now(const pod_shares::ContainerStart& start, std::uint64_t number) {
  auto filled = provisioner_.provision(machine(), start);
  if (filled.ok()) {
    std::vector<std::string> names;
    for (const auto& container : start.containers) names.push_back(container.name);
    log_.info(kSlotsComponent, "share is ready",
              {{"pod_uid", start.pod.uid}, {"containers", names}});
    for (auto& patch : *filled) {
      if (patcher_) patcher_->tell(std::move(patch));
    }
  }
  loop_.post([this, here = here_, number, outcome = filled.ok() ? Status() : filled.error()] {
    if (*here) answer(number, outcome);
  });
}

void PodShares::answer(std::uint64_t number, const Status& outcome) {
  const auto found = waiting_.find(number);
  const auto question = std::move(found->second);
  waiting_.erase(found);
  if (question.over()) return;
  if (outcome.ok()) {
    question.ready();
  } else {
    question.fail(outcome.error());
  }
}

void PodShares::end(std::set<std::string> gone, std::set<std::string> remembered) {
  if (std::exchange(sweeping_, true)) return;  // the last run has not finished
  worker_.give([this, gone = std::move(gone), remembered = std::move(remembered)] {
    const bool complete = pods_.complete();
    provisioner_.remove_all_except([&](const grants::GrantFile& written) {
      // A pod in which only an init container has a GPU is not in the kubelet's list.
      const auto& uid = written.grant.pod.uid;
      return !gone.contains(uid) || pods_.find(uid).has_value() ||
             (!complete && remembered.contains(uid));
    });
    loop_.post([this, here = here_] {
      if (*here) sweeping_ = false;
    });
  });
}

}  // namespace gantry::agent
