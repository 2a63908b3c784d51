// SPDX-License-Identifier: Apache-2.0
// Ends the shares of pods that are gone.
#include "node/pod_shares/share.hpp"
#include "node/pod_shares/share_provisioner.hpp"
#include "sharing/daemon/client.hpp"

#include <algorithm>
#include <optional>

namespace gantry::pod_shares {
namespace {

using grants::GrantFile;

bool has_slot_shares(const sys::Host& host) {
  const auto names = host.list(daemon::kSharesDirectory);
  return names.ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return name.starts_with(publish::kSlotPrefix);
         });
}

std::set<std::string> slots_of(const std::vector<GrantFile>& granted) {
  std::set<std::string> names;
  for (const auto& written : granted) {
    if (!written.grant.share) continue;
    names.insert(written.grant.share->name);
    names.insert(written.grant.share->other_slots.begin(), written.grant.share->other_slots.end());
  }
  return names;
}

}  // namespace

// Removes the grant last: while it exists, the rest is cleaned up again.
Status ShareProvisioner::end_container(const GrantFile& written,
                                       const std::vector<GrantFile>& others) const {
  std::vector<GrantFile> rest;
  std::copy_if(others.begin(), others.end(), std::back_inserter(rest), [&](const GrantFile& other) {
    return other.grant.pod.uid != written.grant.pod.uid || other.container != written.container;
  });
  const auto used = slots_of(rest);
  const auto& share = *written.grant.share;
  if (!used.contains(share.name)) {
    GANTRY_TRY(auto client, daemon::Client::connect_or_start(context_.host, context_.share_daemon));
    GANTRY_CHECK(end_share(client, share.name));
    GANTRY_CHECK(publish::remove_slot_spec(context_.host, share.name));
  }
  for (const auto& name : share.other_slots) {
    if (!used.contains(name)) GANTRY_CHECK(publish::remove_slot_spec(context_.host, name));
  }
  return grants::remove(context_.host, written.grant.pod.uid, written.container);
}

bool ShareProvisioner::remove_all_except(const std::function<bool(const GrantFile&)>& alive) {
  auto granted = grants::list(context_.host);
  if (!granted.ok()) return false;
  bool clean = true;
  for (std::size_t i = 0; i < granted->size();) {
    const auto written = (*granted)[i];
    if (!written.grant.share || alive(written)) {
      ++i;
      continue;
    }
    const auto ended = end_container(written, *granted);
    if (!ended.ok()) {
      clean = false;
      context_.note({.what = ShareNote::Kind::NotRemoved,
                     .pod = written.grant.pod,
                     .container = written.container,
                     .error = ended.error().text()});
      ++i;
      continue;
    }
    context_.note({.what = ShareNote::Kind::Removed,
                   .pod = written.grant.pod,
                   .container = written.container});
    granted->erase(granted->begin() + static_cast<std::ptrdiff_t>(i));
  }
  return remove_orphans() && clean;
}

// Lists the objects first and the grants second: a grant is written before its objects, perhaps
// just now by the agent that takes over from us.
bool ShareProvisioner::remove_orphans() const {
  const auto specs = publish::slot_spec_names(context_.host);
  std::vector<std::string> shares;
  std::optional<daemon::Client> client;
  if (has_slot_shares(context_.host)) {
    auto connected = daemon::Client::connect_or_start(context_.host, context_.share_daemon);
    if (!connected.ok()) return false;
    client.emplace(*std::move(connected));
    const auto listed = client->list();
    if (!listed.ok()) return false;
    for (const auto& state : *listed) {
      if (state.share.name.starts_with(publish::kSlotPrefix)) shares.push_back(state.share.name);
    }
  }
  const auto granted = grants::list(context_.host);
  if (!granted.ok()) return false;
  const auto used = slots_of(*granted);
  bool clean = true;
  for (const auto& name : specs) {
    if (!used.contains(name)) (void)publish::remove_slot_spec(context_.host, name);
  }
  for (const auto& name : shares) {
    if (!used.contains(name)) clean = end_share(*client, name).ok() && clean;
  }
  return clean;
}

}  // namespace gantry::pod_shares
