// SPDX-License-Identifier: Apache-2.0
#include "agent/ownership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::agent {
namespace {

constexpr std::string_view kWhere = "ledger";

template <class T>
std::vector<T> at(const std::map<std::string, std::vector<T>>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::vector<T>{} : found->second;
}

}  // namespace

bool Ownership::open() {
  if (ledger_) return true;
  auto ledger = ledger::Ledger::open(host_);
  if (!ledger.ok()) {
    if (ledger.error().code() != Errc::Busy) log_.error(kWhere, ledger.error().text());
    return false;
  }
  for (const auto& note : ledger->notes()) log_.warning(kWhere, note);
  ledger_.emplace(*std::move(ledger));
  return true;
}

// "" when the plugin may offer it this way.
std::string Ownership::reason_against(const offer::GpuUse& gpu, const InUse& in_use) {
  const auto adopted = ledger_->adopt(gpu.gpu, ledger::Owner::Plugin, gpu.use);
  if (!adopted.ok()) return adopted.error().text();
  const auto* known = ledger_->state().find(gpu.gpu);
  if (known->owner == ledger::Owner::Plugin && known->use == gpu.use) return "";
  const auto changed = ledger_->change(gpu.gpu, ledger::Owner::Plugin, gpu.use,
                                       {.withdrawn = withdrawn_.contains(gpu.gpu.text),
                                        .holders = at(in_use.pods, gpu.gpu.text),
                                        .pids = at(in_use.pids, gpu.gpu.text)});
  return changed.ok() ? "" : changed.error().text();
}

bool Ownership::settle(offer::Offer& offer, const InUse& in_use) {
  if (!ledger_) return false;
  std::set<std::string> held_back;
  for (const auto& gpu : offer.uses) {
    const auto reason = reason_against(gpu, in_use);
    if (reason.empty()) continue;
    held_back.insert(gpu.gpu.text);
    offer.notes.push_back(fmt::format("GPU {} is not offered: {}", gpu.index, reason));
  }
  for (auto& resource : offer.resources)
    std::erase_if(resource.devices, [&](const model::OfferedDevice& device) {
      return held_back.contains(device.gpu.text);
    });
  withdrawn_ = std::move(held_back);
  return !withdrawn_.empty();
}

}  // namespace gantry::agent
