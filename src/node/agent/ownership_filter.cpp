// SPDX-License-Identifier: Apache-2.0
#include "node/agent/ownership_filter.hpp"

#include "gpu/ownership/fits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gantry::agent {
namespace {

constexpr std::string_view kOwnershipComponent = "ledger";
constexpr std::chrono::milliseconds kKubeletTakesNote{500};
constexpr std::chrono::milliseconds kPodEnds{1'000};  // between two checks whether a pod has ended

template <class T>
std::vector<T> at(const std::map<std::string, std::vector<T>>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::vector<T>{} : found->second;
}

std::vector<std::string> names_of(const std::vector<OwnershipFilter::HeldDevice>& holdings) {
  std::vector<std::string> names;
  names.reserve(holdings.size());
  for (const auto& holding : holdings) names.push_back(holding.pod);
  return names;
}

using Names = std::map<std::string, std::set<std::string>>;  // names of resources, by device

Names names_in(const resources::Offer& offer) {
  Names names;
  for (const auto& resource : offer.resources) {
    for (const auto& device : resource.devices)
      names[device.mig.text.empty() ? device.gpu.text : device.mig.text].insert(resource.name);
  }
  return names;
}

// The kubelet counts each resource separately: under a new name it would allocate the device again.
std::string reason_by_name(const std::vector<OwnershipFilter::HeldDevice>& holdings,
                           const Names& names) {
  for (const auto& holding : holdings) {
    const auto found = names.find(holding.device);
    if (found == names.end() || found->second.contains(holding.resource)) continue;
    return fmt::format("pod {} has {} as {}; it is offered as {} after that pod ends", holding.pod,
                       holding.device, holding.resource, *found->second.begin());
  }
  return "";
}

}  // namespace

bool OwnershipFilter::open() {
  if (ledger_) return true;
  auto ledger = ownership::OwnershipStore::open(host_);
  if (!ledger.ok()) {
    const auto& why = ledger.error();
    another_has_ledger_ = why.code() == Errc::Busy;
    if (another_has_ledger_) keep_changes_from_beginning();
    if (std::exchange(reported_, why.text()) != why.text() && why.code() != Errc::Busy)
      log_.error(kOwnershipComponent, "cannot open the ownership ledger", {{"err", why}});
    return false;
  }
  for (const auto& note : ledger->notes())
    log_.warning(kOwnershipComponent, "the ownership ledger was repaired", {{"why", note}});
  ledger_.emplace(*std::move(ledger));
  start_lock_.reset();
  return true;
}

void OwnershipFilter::keep_changes_from_beginning() {
  if (start_lock_) return;
  auto lock = ownership::StartLock::take(host_);
  if (lock.ok()) start_lock_.emplace(*std::move(lock));
}

// A GPU of another owner stays with it: only a request gives it back (owner_change.hpp).
OwnershipFilter::HoldBack OwnershipFilter::reason_by_ledger(const resources::GpuUse& gpu,
                                                            const GpuUsage& in_use,
                                                            Clock::time_point now) {
  const auto adopted = ledger_->adopt(gpu.pci, gpu.gpu, ownership::Owner::Plugin, gpu.use);
  if (!adopted.ok()) return {.reason = adopted.error().text()};
  const auto* known = ledger_->state().find(gpu.pci);
  const auto* intent = ledger_->state().intent(gpu.pci);
  const ownership::Card card{.name = gpu.pci.sysfs(),
                             .owner = known->owner,
                             .use = known->use,
                             .changing = intent != nullptr};
  const auto refusals = ownership::fits(
      card, {},
      {.owner = ownership::Owner::Plugin, .holding = {.holder = "the kubelet", .mode = gpu.use}});
  if (refusals.empty()) return {};
  if (intent != nullptr)
    return {.reason = fmt::format("its owner is being changed: {}", describe(*intent)),
            .may_end = false,
            .kept = intent->kept};
  if (known->owner == ownership::Owner::Vm && gpu.use == model::AllocationMode::Vm)
    return {};  // as configured: it has no device in the offer
  if (known->owner != ownership::Owner::Plugin)
    return {.reason = fmt::format("it belongs to {}", to_string(known->owner)), .may_end = false};
  const bool noted = in_use.certain && withdrawn(gpu.pci, now);
  const auto changed = ledger_->change(gpu.pci, ownership::Owner::Plugin, gpu.use,
                                       {.withdrawn = noted,
                                        .holders = names_of(at(in_use.pods, gpu.gpu.text)),
                                        .pids = at(in_use.pids, gpu.gpu.text)});
  return {.reason = changed.ok() ? "" : changed.error().text()};
}

void OwnershipFilter::withhold(const model::PciAddress& gpu, std::string reason,
                               std::vector<std::string> kept) {
  withheld_[gpu] = {.reason = std::move(reason), .kept = std::move(kept)};
}

void OwnershipFilter::keep_withheld(const model::PciAddress& gpu, std::string reason) {
  withheld_[gpu].reason = std::move(reason);
}

void OwnershipFilter::let_go(const model::PciAddress& gpu) {
  withheld_.erase(gpu);
}

bool OwnershipFilter::withdrawn(const model::PciAddress& gpu, Clock::time_point now) const {
  const auto since = withdrawn_.find(gpu);
  return since != withdrawn_.end() && now - since->second >= kKubeletTakesNote;
}

// While the previous agent has the ledger, or it cannot be written, its contents still count.
std::string OwnershipFilter::reason_by_former(
    const resources::GpuUse& gpu, const Result<ownership::OwnershipState>& former) const {
  if (!former.ok()) return former.error().text();
  const bool changing = former->intent(gpu.pci) != nullptr;
  auto state = *former;  // a card that has moved, or whose address was not known, has its owner
  ownership::identify(state, gpu.pci, gpu.gpu);
  const auto* known = state.find(gpu.pci);
  const bool ours =
      known == nullptr || (known->owner == ownership::Owner::Plugin && known->use == gpu.use);
  if (ours && !changing) return "";
  return fmt::format("the ownership ledger records another use, and it cannot be changed now: {}",
                     reported_);
}

// Soon after the kubelet has seen the withdrawal, because a change of the GPU waits for it. Later,
// only for the end of pods, unless the kubelet has not been asked since.
std::chrono::milliseconds OwnershipFilter::next_look(const GpuUsage& in_use,
                                                     Clock::time_point now) const {
  auto next = in_use.certain ? kPodEnds : std::chrono::milliseconds{0};
  for (const auto& [gpu, since] : withdrawn_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(since + kKubeletTakesNote - now);
    if (left.count() > 0) next = next.count() > 0 ? std::min(next, left) : left;
  }
  return next;
}

OwnershipFilter::HoldBack OwnershipFilter::why_not(const resources::GpuUse& gpu,
                                                   const GpuUsage& in_use,
                                                   const Result<ownership::OwnershipState>& former,
                                                   Clock::time_point now) {
  if (const auto found = withheld_.find(gpu.pci); found != withheld_.end())
    return {.reason = found->second.reason, .may_end = false, .kept = found->second.kept};
  if (!ledger_) return {.reason = reason_by_former(gpu, former)};
  return reason_by_ledger(gpu, in_use, now);
}

std::optional<std::chrono::milliseconds> OwnershipFilter::settle(resources::Offer& offer,
                                                                 const GpuUsage& in_use,
                                                                 Clock::time_point now) {
  const auto names = names_in(offer);
  const auto former =
      ledger_ ? Result<ownership::OwnershipState>({}) : ownership::OwnershipStore::peek(host_);
  std::map<model::PciAddress, Clock::time_point> since;
  std::set<std::string> held_back;  // UUIDs
  std::set<std::string> kept;       // of MIG instances
  bool look_again = false;
  for (const auto& gpu : offer.uses) {
    auto why = why_not(gpu, in_use, former, now);
    if (why.reason.empty()) why = {.reason = reason_by_name(at(in_use.pods, gpu.gpu.text), names)};
    if (why.reason.empty()) continue;
    const auto before = withdrawn_.find(gpu.pci);
    since[gpu.pci] = before == withdrawn_.end() ? now : before->second;
    held_back.insert(gpu.gpu.text);
    kept.insert(why.kept.begin(), why.kept.end());
    look_again = look_again || why.may_end;
    offer.notes.push_back(fmt::format("GPU {} is not offered{}: {}", gpu.index,
                                      why.kept.empty() ? "" : ", but for some of its instances",
                                      why.reason));
  }
  for (auto& resource : offer.resources)
    std::erase_if(resource.devices, [&](const model::AdvertisedDevice& device) {
      return held_back.contains(device.gpu.text) && !kept.contains(device.mig.text);
    });
  const auto is_held_back = [&](const resources::SharedGpu& card) {
    return held_back.contains(card.gpu.text);
  };
  if (std::erase_if(offer.shared.cards, is_held_back) > 0) resources::rebuild_tokens(offer);
  withdrawn_ = std::move(since);
  if (!look_again) return std::nullopt;
  return next_look(in_use, now);
}

}  // namespace gantry::agent
