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
                 std::set<std::string>& found) {
  for (const auto& offered : offering.offer.resources) {
    if (offered.name != holder.resource) continue;
    for (const auto& device : offered.devices) {
      if (std::find(holder.ids.begin(), holder.ids.end(), device.id) == holder.ids.end()) continue;
      found.insert(device.mig.text.empty() ? device.gpu.text : device.mig.text);
    }
  }
}

// A container has one grant, with its devices of all resources.
model::Grant grant_of(const kubelet::Checkpoint& checkpoint,
                      const model::DeviceAllocation& container, const CurrentOffer& offering) {
  model::Grant grant{.pod_namespace = container.pod_namespace, .pod = container.pod};
  std::set<std::string> devices;
  for (const auto& holder : checkpoint.holders) {
    if (holder.pod_uid != container.pod_uid || holder.container != container.container) continue;
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
        alive.insert(holder.pod_uid);
    }
  }
  return alive;
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
  log_.warning(kStartsComponent, what + ": the container starts without a grant");
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
    if (auto known = grants::read(host_, holder.pod_uid, holder.container); known.ok()) {
      grant.share = std::move(known->share);
      grant.pod_namespace = std::move(known->pod_namespace);  // the checkpoint has only the UID
      grant.pod = std::move(known->pod);
    }
    look_at_grants_ = true;
    auto written = grants::write(host_, holder.pod_uid, holder.container, grant);
    if (!written.ok()) log_.error(kStartsComponent, written.error().text());
    log_.info(kStartsComponent, fmt::format("pod {} container {}: {}", holder.pod_uid,
                                            holder.container, fmt::join(grant.devices, ", ")));
  }
  return holders.empty() ? PreStartState::NotYet : PreStartState::Ready;
}

void PreStartHandler::remove_grants_of_gone_pods(
    const std::vector<model::DeviceAllocation>& listed) {
  if (!look_at_grants_ && listed == listed_) return;
  const auto checkpoint = kubelet::read_checkpoint(host_.outside(directory_));
  const auto granted = grants::list(host_);
  if (!checkpoint.ok() || !granted.ok()) return;
  const auto alive = alive_pods(*checkpoint, listed);
  std::set<std::string> keep;
  std::set<std::string> missing;
  std::set<std::string> in_slots;
  for (const auto& grant : *granted) {
    if (grant.grant.share) in_slots.insert(grant.pod_uid);
    if (!alive.contains(grant.pod_uid)) missing.insert(grant.pod_uid);
    if (!missing.contains(grant.pod_uid) || !missing_.contains(grant.pod_uid))
      keep.insert(grant.pod_uid);
  }
  for (const auto& grant : *granted) {
    if (keep.contains(grant.pod_uid) || in_slots.contains(grant.pod_uid)) continue;
    const auto removed = grants::remove(host_, grant.pod_uid);
    if (!removed.ok()) log_.warning(kStartsComponent, removed.error().text());
    log_.detail(1, kStartsComponent, fmt::format("pod {} is gone", grant.pod_uid));
  }
  missing_ = std::move(missing);
  listed_ = listed;
  look_at_grants_ = !missing_.empty() || !in_slots.empty();
  if (pod_shares_ == nullptr) return;
  std::set<std::string> remembered;
  for (const auto& holder : checkpoint->holders) remembered.insert(holder.pod_uid);
  std::set<std::string> gone;
  std::set_difference(in_slots.begin(), in_slots.end(), keep.begin(), keep.end(),
                      std::inserter(gone, gone.end()));
  pod_shares_->end(std::move(gone), std::move(remembered));
}

}  // namespace gantry::agent
