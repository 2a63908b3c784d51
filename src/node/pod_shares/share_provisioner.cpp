// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/share_provisioner.hpp"

#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "node/pod_shares/share.hpp"
#include "node/resources/resources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::pod_shares {
namespace {

using grants::GrantFile;

const GrantFile* grant_of(const std::vector<GrantFile>& granted, const std::string& uid,
                          const std::string& container) {
  for (const auto& written : granted) {
    if (written.grant.pod.uid == uid && written.container == container && written.grant.share)
      return &written;
  }
  return nullptr;
}

Result<std::string> slot_of(const StartingContainer& container,
                            const podspec::ContainerRequest& asked) {
  const auto found = container.ids.find(asked.resource);
  if (found == container.ids.end()) {
    return Error(Errc::Denied, fmt::format("container {} asks for {}, but the kubelet allocated "
                                           "none of it; delete the pod and create it again",
                                           printable(container.name), asked.resource));
  }
  return resources::slot_name(found->first, found->second);
}

std::string patch_body(const podspec::PodRequest& ask,
                       const std::map<std::string, std::string>& annotations) {
  json::Writer out;
  out.object([&] {
    out.object("metadata", [&] {
      out.member("uid", ask.pod.uid);
      out.object("annotations", annotations);
    });
  });
  return std::move(out).text();
}

constexpr std::string_view kAssigned = "ALIYUN_COM_GPU_MEM_ASSIGNED";
constexpr std::string_view kAssumeTime = "ALIYUN_COM_GPU_MEM_ASSUME_TIME";

podspec::AnnotationInput annotation_facts(const podspec::NodeInfo& node, std::int64_t unix_ns) {
  podspec::AnnotationInput facts{.node = node.name, .unit_mib = node.unit_mib, .unix_ns = unix_ns};
  for (const auto& card : node.cards) {
    facts.card_mib[card.uuid] = card.mib;
    facts.model[card.uuid] = card.model;
  }
  return facts;
}

std::vector<podspec::CardId> card_ids(const podspec::NodeInfo& node) {
  std::vector<podspec::CardId> names;
  for (const auto& card : node.cards) names.push_back({card.index, card.uuid});
  return names;
}

// When a container of a pod starts: whether another container of the pod has ended, by the
// kubelet's order. Init containers run one after the other and end before the others start. If an
// init container starts again, the sandbox is new and no other container runs.
bool has_ended(const model::GrantShare& other, const std::vector<model::GrantShare>& starting) {
  using enum model::ContainerPhase;
  const auto any = [&](model::ContainerPhase phase) {
    return std::any_of(starting.begin(), starting.end(),
                       [&](const auto& share) { return share.phase == phase; });
  };
  if (other.phase == Main) return any(Init) && !any(Main) && !any(Sidecar);
  if (other.phase == Sidecar) return false;
  if (any(Main) || any(Init)) return true;
  return std::any_of(starting.begin(), starting.end(),
                     [&](const auto& share) { return other.position < share.position; });
}

}  // namespace

struct ShareProvisioner::Plan {
  std::string slot;
  podspec::PodRequest ask;
  podspec::Placement placement;
  std::vector<model::GpuShare> parts;
  policy::Share share;
  std::vector<std::string> env;
  std::vector<std::string> other_slots;
  std::vector<std::pair<std::string, model::Grant>> grants;  // by container
  std::vector<PodPatch> patches;
};

// The other pods from the API server, without those that no scheduler placed: they get what is
// left.
std::vector<PlacedPod> ShareProvisioner::placed_pods(const NodeSnapshot& machine) const {
  std::vector<PlacedPod> all;
  for (const auto& text : context_.pods()) {
    const auto pod = json::Document::parse(text);
    if (!pod.ok()) continue;
    auto ask = podspec::parse_amounts(pod->root());
    if (!ask.ok() || !*ask) continue;
    auto placement = podspec::read_placement(pod->root(), **ask, card_ids(machine.facts),
                                             machine.facts.unit_mib);
    if (placement.ok() && *placement) all.push_back({**std::move(ask), **std::move(placement)});
  }
  return all;
}

Result<podspec::Placement> ShareProvisioner::placement_for(const NodeSnapshot& machine,
                                                           const json::Document& pod,
                                                           const podspec::PodRequest& ask,
                                                           const std::vector<GrantFile>& granted,
                                                           Plan& plan) {
  GANTRY_TRY(auto placed, podspec::read_placement(pod.root(), ask, card_ids(machine.facts),
                                                  machine.facts.unit_mib));
  if (placed) {
    // A container that restarts keeps its grant, even if the node now counts differently.
    auto fresh = ask;
    auto rest = *placed;
    std::erase_if(fresh.containers, [&](const podspec::ContainerRequest& one) {
      return grant_of(granted, ask.pod.uid, one.container) != nullptr;
    });
    std::erase_if(rest, [&](const podspec::ContainerPlacement& one) {
      return grant_of(granted, ask.pod.uid, one.container) != nullptr;
    });
    GANTRY_CHECK(check_placement(fresh, rest, machine.facts));
    if (ask.contract == podspec::Contract::Gpushare &&
        pod["metadata"]["annotations"][kAssigned].string() != "true") {
      plan.patches.push_back({.pod = ask.pod,
                              .body = patch_body(ask, {{std::string(kAssigned), "true"},
                                                       {std::string(kAssumeTime),
                                                        fmt::to_string(context_.unix_ns())}}),
                              .why = "it has its GPU"});
    }
    return *std::move(placed);
  }
  GANTRY_TRY(auto chosen,
             place_on_this_node(ask, machine.facts, placed_pods(machine), granted)
                 .in("no scheduler placed the pod, and this node has no room for it now"));
  auto annotations =
      podspec::annotations(ask, chosen, annotation_facts(machine.facts, context_.unix_ns()));
  if (ask.contract == podspec::Contract::Gpushare)
    annotations.insert_or_assign(std::string(kAssigned), "true");
  plan.patches.push_back(
      {.pod = ask.pod, .body = patch_body(ask, annotations), .why = "this node placed it"});
  context_.note({.what = ShareNote::Kind::Placed, .pod = ask.pod});
  return chosen;
}

Result<ShareProvisioner::Plan> ShareProvisioner::plan_for(const NodeSnapshot& machine,
                                                          const ContainerStart& start,
                                                          const std::vector<GrantFile>& granted) {
  GANTRY_TRY(const auto text, context_.pod(start.pod.uid));
  GANTRY_TRY(const auto pod, json::Document::parse(text).in("the pod"));
  GANTRY_TRY(auto ask, podspec::parse_request(pod.root()));
  if (!ask)
    return Error(Errc::Denied,
                 "its pod asks for no shared GPU; delete the pod and create it again");
  Plan plan{.ask = *std::move(ask)};
  GANTRY_TRY(plan.placement, placement_for(machine, pod, plan.ask, granted, plan));
  // A container keeps its grant, whatever is written into the pod.
  for (auto& placed : plan.placement) {
    const auto* known = grant_of(granted, start.pod.uid, placed.container);
    if (known == nullptr) continue;
    placed.parts = known->grant.share->parts;
  }
  GANTRY_CHECK(check_room(plan.ask, plan.placement, machine.facts, granted));

  std::vector<podspec::ContainerPlacement> placed;
  const podspec::ContainerRequest* last = nullptr;
  for (const auto& asked : plan.ask.containers) {
    const auto container =
        std::find_if(start.containers.begin(), start.containers.end(),
                     [&](const StartingContainer& one) { return one.name == asked.container; });
    if (container == start.containers.end()) continue;
    GANTRY_TRY(plan.slot, slot_of(*container, asked));
    const auto* where = find(plan.placement, asked.container);
    placed.push_back(*where);
    last = &asked;
    model::Grant grant{.pod = plan.ask.pod,
                       .resources = container->ids,
                       .share = model::GrantShare{.name = plan.slot,
                                                  .phase = asked.phase,
                                                  .position = asked.position,
                                                  .parts = where->parts}};
    for (const auto& [resource, ids] : container->ids) {
      if (resource == asked.resource) continue;
      grant.share->other_slots.push_back(resources::slot_name(resource, ids));
      plan.other_slots.push_back(grant.share->other_slots.back());
    }
    plan.grants.emplace_back(asked.container, std::move(grant));
  }
  if (last == nullptr)
    return Error(Errc::Denied, fmt::format("{} asks for no shared GPU in its pod",
                                           printable(start.containers.front().name)));
  std::vector<model::GrantShare> others;
  for (const auto& written : granted) {
    const auto& share = written.grant.share;
    if (written.grant.pod.uid == start.pod.uid && share && share->name != plan.slot &&
        share->phase != model::ContainerPhase::Init)
      others.push_back(*share);
  }
  plan.parts = limit_to_charge(merge_containers(placed), placed.back(),
                               podspec::charges(plan.ask, plan.placement), others);
  GANTRY_TRY(plan.share, share_for(plan.slot, plan.ask, *last, plan.parts));
  plan.env = environment_of(plan.ask, plan.placement, plan.parts, machine.facts);
  return plan;
}

// True for a container that restarts with its grant; needed while the API server is unreachable.
bool ShareProvisioner::is_up_to_date(const ContainerStart& start,
                                     const std::vector<GrantFile>& granted) const {
  std::vector<std::string> names;
  for (const auto& container : start.containers) {
    const auto* known = grant_of(granted, start.pod.uid, container.name);
    if (known == nullptr) return false;
    names.push_back(known->grant.share->name);
    if (!context_.host.exists(publish::slot_spec_path(names.back()))) return false;
  }
  auto client = daemon::Client::connect_or_start(context_.host, context_.share_daemon);
  return client.ok() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
           return client->show(name).ok();
         });
}

// Ends the pod's other containers that have ended. A container that passed on its slot leaves it
// with the amount that the next container asks for, because the containers that start now need the
// rest.
Status ShareProvisioner::end_others(daemon::Client& client, const Plan& plan,
                                    const std::vector<GrantFile>& granted) {
  std::vector<model::GrantShare> starting;
  for (const auto& [container, grant] : plan.grants) starting.push_back(*grant.share);
  const auto goes = [&](const GrantFile& written) {
    return written.grant.pod.uid == plan.ask.pod.uid && written.grant.share &&
           written.grant.share->name != plan.slot && has_ended(*written.grant.share, starting);
  };
  for (const auto& written : granted) {
    if (!goes(written)) continue;
    GANTRY_CHECK(end_container(written, granted));
    const auto heir = std::find_if(granted.begin(), granted.end(), [&](const GrantFile& other) {
      return other.grant.pod.uid == plan.ask.pod.uid && other.grant.share && !goes(other) &&
             other.grant.share->name == written.grant.share->name;
    });
    if (heir == granted.end()) continue;
    const auto* asked = find(plan.ask, heir->container);
    if (asked == nullptr) continue;
    GANTRY_TRY(const auto share,
               share_for(heir->grant.share->name, plan.ask, *asked, heir->grant.share->parts));
    GANTRY_CHECK(ensure_share(client, share));
  }
  return {};
}

Status ShareProvisioner::apply_plan(const NodeSnapshot& machine, const Plan& plan,
                                    const std::vector<GrantFile>& granted) {
  GANTRY_TRY(const auto options, context_.spec());
  GANTRY_TRY(auto client, daemon::Client::connect_or_start(context_.host, context_.share_daemon));
  GANTRY_CHECK(end_others(client, plan, granted));
  GANTRY_CHECK(ensure_share(client, plan.share));
  publish::ShareDevice device{
      .name = plan.slot,
      .directory = fmt::format("{}/{}/fence", daemon::kSharesDirectory, plan.slot)};
  for (const auto& part : plan.parts) device.gpus.push_back(part.uuid);
  device.more.env = plan.env;
  GANTRY_CHECK(publish::write_slot_spec(context_.host, machine.inventory, device, options));
  for (const auto& name : plan.other_slots) {
    publish::ShareDevice empty{.name = name};
    empty.more.env = {fmt::format("GANTRY_SHARE={}", plan.slot)};
    GANTRY_CHECK(publish::write_slot_spec(context_.host, machine.inventory, empty, options));
  }
  return {};
}

// Writes the grant first, so that everything created later has an owner.
Status ShareProvisioner::give(const NodeSnapshot& machine, const Plan& plan,
                              const std::vector<GrantFile>& granted) {
  std::vector<std::string> added;
  for (const auto& [container, grant] : plan.grants) {
    if (grant_of(granted, plan.ask.pod.uid, container) == nullptr) added.push_back(container);
    auto whole = grant;  // with its other devices
    if (auto known = grants::read(context_.host, plan.ask.pod.uid, container); known.ok()) {
      whole.devices = std::move(known->devices);
      whole.resources.merge(known->resources);
    }
    GANTRY_CHECK(grants::write(context_.host, container, whole));
  }
  auto made = apply_plan(machine, plan, granted);
  if (made.ok()) return made;
  for (const auto& container : added)
    (void)grants::remove(context_.host, plan.ask.pod.uid, container);
  return made;
}

// The kubelet reuses ids only when the pod that had them has ended.
Result<std::vector<GrantFile>> ShareProvisioner::end_previous(const ContainerStart& start) const {
  std::set<std::pair<std::string, std::string>> ids;
  for (const auto& container : start.containers) {
    for (const auto& [resource, some] : container.ids) {
      for (const auto& id : some) ids.emplace(resource, id);
    }
  }
  const auto had_them = [&](const GrantFile& written) {
    for (const auto& [resource, some] : written.grant.resources) {
      for (const auto& id : some) {
        if (ids.contains({resource, id})) return true;
      }
    }
    return false;
  };
  GANTRY_TRY(const auto granted, grants::list(context_.host));
  std::vector<GrantFile> rest;
  for (const auto& written : granted) {
    if (!written.grant.share || written.grant.pod.uid == start.pod.uid || !had_them(written)) {
      rest.push_back(written);
      continue;
    }
    GANTRY_CHECK(end_container(written, granted)
                     .in(fmt::format("ending the share of pod {}, which had the slot before",
                                     written.grant.pod.uid)));
  }
  return rest;
}

Result<std::vector<PodPatch>> ShareProvisioner::provision(const NodeSnapshot& machine,
                                                          const ContainerStart& start) {
  GANTRY_TRY(const auto granted, end_previous(start));
  auto plan = plan_for(machine, start, granted);
  if (!plan.ok()) {
    if (plan.error().code() == Errc::Busy && is_up_to_date(start, granted))
      return std::vector<PodPatch>{};
    return plan.error();
  }
  GANTRY_CHECK(give(machine, *plan, granted));
  return std::move(plan->patches);
}

}  // namespace gantry::pod_shares
