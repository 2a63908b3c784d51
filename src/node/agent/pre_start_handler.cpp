// SPDX-License-Identifier: Apache-2.0
#include "node/agent/pre_start_handler.hpp"

#include "container/grants/grants.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace gantry::agent {
namespace {

constexpr std::string_view kStartsComponent = "start";

// Adds the UUIDs of the cards and instances behind the kubelet's names.
void add_devices(const CurrentOffer& offering, const model::DeviceAllocation& holder,
                 std::set<model::GpuUuid>& found) {
  for (const auto& offered : offering.offer.resources) {
    if (offered.name != holder.resource) continue;
    for (const auto& device : offered.devices) {
      if (std::find(holder.ids.begin(), holder.ids.end(), device.id) == holder.ids.end()) continue;
      found.insert(device.mig.text.empty() ? device.gpu : device.mig);
    }
  }
}

// A container has one grant, with its devices of all resources.
model::Grant grant_of(const kubelet::Checkpoint& checkpoint,
                      const model::DeviceAllocation& container, const CurrentOffer& offering) {
  model::Grant grant{.pod = container.pod};
  std::set<model::GpuUuid> devices;
  for (const auto& holder : checkpoint.holders) {
    if (holder.pod.uid != container.pod.uid || holder.container != container.container) continue;
    grant.resources[holder.resource] = holder.ids;
    add_devices(offering, holder, devices);
  }
  grant.devices.assign(devices.begin(), devices.end());
  return grant;
}

bool is_slots(const CurrentOffer& offering, const std::string& resource) {
  const auto& all = offering.offer.resources;
  return std::any_of(all.begin(), all.end(), [&](const model::AdvertisedResource& offered) {
    return offered.name == resource && offered.tokens;
  });
}

// Podresources lists a container's devices in several entries. One common id is enough, because no
// two pods have the same id.
std::set<std::string> alive_pods(const kubelet::Checkpoint& checkpoint,
                                 const std::vector<model::DeviceAllocation>& listed) {
  std::set<std::string> ids;
  for (const auto& holder : listed) {
    for (const auto& id : holder.ids)
      ids.insert(fmt::format("{} {} {}", holder.container, holder.resource, id));
  }
  std::set<std::string> alive;
  for (const auto& holder : checkpoint.holders) {
    for (const auto& id : holder.ids) {
      if (ids.contains(fmt::format("{} {} {}", holder.container, holder.resource, id)))
        alive.insert(holder.pod.uid);
    }
  }
  return alive;
}

std::set<std::string> pods_in(const kubelet::Checkpoint& checkpoint) {
  std::set<std::string> pods;
  for (const auto& holder : checkpoint.holders) pods.insert(holder.pod.uid);
  return pods;
}

std::set<std::string> pods_in_slots(const std::vector<grants::GrantFile>& granted) {
  std::set<std::string> pods;
  for (const auto& written : granted) {
    if (written.grant.share) pods.insert(written.grant.pod.uid);
  }
  return pods;
}

}  // namespace

struct PreStartHandler::WaitingRequest {
  std::string resource;
  kubelet::PreStartRequest question;
  std::shared_ptr<const CurrentOffer> offering;
  int looks = 0;
  sys::Loop::Timer timer;
};

PreStartHandler::PreStartHandler(sys::Loop& loop, const sys::Host& host, std::string directory,
                                 const Log& log, CheckpointRetries retries)
    : loop_(loop), host_(host), directory_(std::move(directory)), log_(log), retries_(retries) {}

PreStartHandler::~PreStartHandler() = default;

void PreStartHandler::prepare(const std::string& resource, kubelet::PreStartRequest question,
                              std::shared_ptr<const CurrentOffer> offering) {
  waiting_.push_back({resource, std::move(question), std::move(offering), 0, {}});
  look_again(std::prev(waiting_.end()));
}

void PreStartHandler::look_again(std::list<WaitingRequest>::iterator waiting) {
  const bool last = ++waiting->looks == retries_.looks;
  const auto found =
      waiting->question.over() ? Result<PreStartState>(PreStartState::Ready) : try_once(*waiting);
  if (!found.ok()) {
    waiting->question.fail(found.error());
    waiting_.erase(waiting);
    return;
  }
  if (*found == PreStartState::NotYet && !last) {
    waiting->timer = loop_.after(retries_.pause, [this, waiting] { look_again(waiting); });
    return;
  }
  if (*found == PreStartState::NotYet) give_up(*waiting);
  if (*found == PreStartState::Ready) waiting->question.ready();
  waiting_.erase(waiting);
}

// The contents of a slot depend on the pod, so the container cannot start. Other devices are in the
// answer to Allocate, so the container can start.
void PreStartHandler::give_up(const WaitingRequest& waiting) const {
  const auto what = fmt::format("the kubelet's checkpoint has no container with {} of {}",
                                fmt::join(waiting.question.ids(), ", "), waiting.resource);
  if (is_slots(*waiting.offering, waiting.resource))
    return waiting.question.fail(Error(Errc::Busy, what));
  log_.warning(kStartsComponent, "the container starts without a grant", {{"why", what}});
  waiting.question.ready();
}

// An answer that cannot be read is not checked: the kubelet has to handle it.
Status PreStartHandler::check_answer(const WaitingRequest& waiting,
                                     const kubelet::Checkpoint& checkpoint,
                                     const model::DeviceAllocation& holder) const {
  const auto stored = kubelet::stored_answer(checkpoint, holder);
  if (!stored.ok()) return {};
  return waiting.offering->answers.check_stored_answer(waiting.resource, holder.ids, *stored);
}

Status PreStartHandler::fill(const WaitingRequest& waiting, const kubelet::Checkpoint& checkpoint,
                             const std::vector<model::DeviceAllocation>& holders) {
  if (pod_shares_ == nullptr) return Error(Errc::Busy, "shared GPUs are not ready yet");
  look_at_grants_ = true;
  pod_shares_->fill(container_start(checkpoint, holders,
                                    [&](const std::string& resource) {
                                      return is_slots(*waiting.offering, resource);
                                    }),
                    waiting.question);
  return {};
}

// Without its grant a container that asks by an environment variable starts without a GPU. The
// kubelet tries again.
Status PreStartHandler::write_grant(const model::DeviceAllocation& holder,
                                    const model::Grant& grant) const {
  const auto written = grants::write(host_, holder.container, grant);
  if (written.ok()) return {};
  return Error(Errc::Busy,
               fmt::format("{}. The runtime would give the container no GPU without this file, so "
                           "it does not start; the kubelet tries again. `df -h {}` shows whether "
                           "the file system is full",
                           written.error().text(), host_.outside("/run")));
}

Result<PreStartHandler::PreStartState> PreStartHandler::try_once(const WaitingRequest& waiting) {
  const auto checkpoint = kubelet::read_checkpoint(host_.outside(directory_));
  if (!checkpoint.ok()) return PreStartState::NotYet;
  const auto holders = kubelet::holders_of(*checkpoint, waiting.resource, waiting.question.ids());
  for (const auto& holder : holders) GANTRY_CHECK(check_answer(waiting, *checkpoint, holder));
  if (!holders.empty() && is_slots(*waiting.offering, waiting.resource)) {
    GANTRY_CHECK(fill(waiting, *checkpoint, holders));
    return PreStartState::InSlots;
  }
  for (const auto& holder : holders) {
    auto grant = grant_of(*checkpoint, holder, *waiting.offering);
    if (auto known = grants::read(host_, holder.pod.uid, holder.container); known.ok()) {
      grant.share = std::move(known->share);
      grant.pod = std::move(known->pod);  // the checkpoint has only the UID
    }
    look_at_grants_ = true;
    GANTRY_CHECK(write_grant(holder, grant));
    log_.info(kStartsComponent, "container starts",
              {{"pod_uid", holder.pod.uid},
               {"container", holder.container},
               {"devices", model::to_texts(grant.devices)}});
  }
  return holders.empty() ? PreStartState::NotYet : PreStartState::Ready;
}

void PreStartHandler::remove_grants(const std::string& pod_uid) const {
  const auto removed = grants::remove(host_, pod_uid);
  if (!removed.ok())
    log_.warning(kStartsComponent, "cannot remove the grants of a pod",
                 {{"pod_uid", pod_uid}, {"err", removed.error()}});
  log_.detail(1, kStartsComponent, "pod is gone", {{"pod_uid", pod_uid}});
}

// The checkpoint is read after the grants: it names a pod before the pod's grant is written.
void PreStartHandler::remove_grants_of_unknown_pods() {
  const auto pods = grants::pods(host_);
  const auto granted = grants::list(host_);
  const auto checkpoint = kubelet::read_checkpoint(host_.outside(directory_));
  if (!pods.ok() || !granted.ok() || !checkpoint.ok()) return;
  auto keep = pods_in(*checkpoint);
  keep.merge(pods_in_slots(*granted));
  for (const auto& pod : *pods) {
    if (!keep.contains(pod)) remove_grants(pod);
  }
}

void PreStartHandler::remove_grants_of_gone_pods(
    const std::vector<model::DeviceAllocation>& listed) {
  if (!look_at_grants_ && listed == listed_) return;
  const auto pods = grants::pods(host_);
  const auto granted = grants::list(host_);
  const auto checkpoint = kubelet::read_checkpoint(host_.outside(directory_));
  if (!checkpoint.ok() || !pods.ok() || !granted.ok()) return;
  const auto alive = alive_pods(*checkpoint, listed);
  auto remembered = pods_in(*checkpoint);
  const auto in_slots = pods_in_slots(*granted);
  std::set<std::string> missing;
  std::set<std::string> gone_from_slots;
  for (const auto& pod : *pods) {
    if (alive.contains(pod)) continue;
    missing.insert(pod);
    if (remembered.contains(pod) && !missing_.contains(pod)) continue;
    if (in_slots.contains(pod)) {
      gone_from_slots.insert(pod);
    } else {
      remove_grants(pod);
    }
  }
  missing_ = std::move(missing);
  listed_ = listed;
  look_at_grants_ = !missing_.empty() || !in_slots.empty();
  if (pod_shares_ != nullptr) pod_shares_->end(std::move(gone_from_slots), std::move(remembered));
}

}  // namespace gantry::agent
