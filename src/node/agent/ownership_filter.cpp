// SPDX-License-Identifier: Apache-2.0
#include "node/agent/ownership_filter.hpp"

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
    if (std::exchange(reported_, why.text()) != why.text() && why.code() != Errc::Busy)
      log_.error(kOwnershipComponent, "cannot open the ownership ledger", {{"err", why}});
    return false;
  }
  for (const auto& note : ledger->notes())
    log_.warning(kOwnershipComponent, "the ownership ledger was repaired", {{"why", note}});
  ledger_.emplace(*std::move(ledger));
  return true;
}

// "" if the plugin may offer it this way.
std::string OwnershipFilter::reason_by_ledger(const resources::GpuUse& gpu, const InUse& in_use,
                                              Clock::time_point now) {
  const auto adopted = ledger_->adopt(gpu.gpu, ownership::Owner::Plugin, gpu.use);
  if (!adopted.ok()) return adopted.error().text();
  const auto* known = ledger_->state().find(gpu.gpu);
  if (known->owner == ownership::Owner::Plugin && known->use == gpu.use) return "";
  const auto since = withdrawn_.find(gpu.gpu.text);
  const bool noted =
      in_use.certain && since != withdrawn_.end() && now - since->second >= kKubeletTakesNote;
  const auto changed = ledger_->change(gpu.gpu, ownership::Owner::Plugin, gpu.use,
                                       {.withdrawn = noted,
                                        .holders = names_of(at(in_use.pods, gpu.gpu.text)),
                                        .pids = at(in_use.pids, gpu.gpu.text)});
  return changed.ok() ? "" : changed.error().text();
}

// While the previous agent has the ledger, or it cannot be written, its contents still count.
std::string OwnershipFilter::reason_by_former(
    const resources::GpuUse& gpu, const Result<ownership::OwnershipState>& former) const {
  if (!former.ok()) return former.error().text();
  const auto* known = former->find(gpu.gpu);
  if (known == nullptr || (known->owner == ownership::Owner::Plugin && known->use == gpu.use))
    return "";
  return fmt::format("the ownership ledger records another use, and it cannot be changed now: {}",
                     reported_);
}

// Soon after the kubelet has seen the withdrawal, because a change of the GPU waits for it. Later,
// only for the end of pods, unless the kubelet has not been asked since.
std::chrono::milliseconds OwnershipFilter::next_look(const InUse& in_use,
                                                     Clock::time_point now) const {
  auto next = in_use.certain ? kPodEnds : std::chrono::milliseconds{0};
  for (const auto& [gpu, since] : withdrawn_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(since + kKubeletTakesNote - now);
    if (left.count() > 0) next = next.count() > 0 ? std::min(next, left) : left;
  }
  return next;
}

std::optional<std::chrono::milliseconds> OwnershipFilter::settle(resources::Offer& offer,
                                                                 const InUse& in_use,
                                                                 Clock::time_point now) {
  const auto names = names_in(offer);
  const auto former =
      ledger_ ? Result<ownership::OwnershipState>({}) : ownership::OwnershipStore::peek(host_);
  std::map<std::string, Clock::time_point> held_back;
  for (const auto& gpu : offer.uses) {
    auto reason = ledger_ ? reason_by_ledger(gpu, in_use, now) : reason_by_former(gpu, former);
    if (reason.empty()) reason = reason_by_name(at(in_use.pods, gpu.gpu.text), names);
    if (reason.empty()) continue;
    const auto before = withdrawn_.find(gpu.gpu.text);
    held_back[gpu.gpu.text] = before == withdrawn_.end() ? now : before->second;
    offer.notes.push_back(fmt::format("GPU {} is not offered: {}", gpu.index, reason));
  }
  for (auto& resource : offer.resources)
    std::erase_if(resource.devices, [&](const model::AdvertisedDevice& device) {
      return held_back.contains(device.gpu.text);
    });
  const auto is_held_back = [&](const resources::SharedGpu& card) {
    return held_back.contains(card.gpu.text);
  };
  if (std::erase_if(offer.shared.cards, is_held_back) > 0) resources::rebuild_tokens(offer);
  withdrawn_ = std::move(held_back);
  if (withdrawn_.empty()) return std::nullopt;
  return next_look(in_use, now);
}

}  // namespace gantry::agent
