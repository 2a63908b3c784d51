// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_cluster/decision_log.hpp"

#include <fmt/format.h>

namespace gantry::placement {
namespace {

std::string decision_text(const std::optional<podspec::Placement>& placement) {
  return placement ? podspec::to_json(*placement) : std::string("refused");
}

Status decide_again(Cluster& cluster, const LogEntry& step) {
  const auto again = cluster.reserve(step.ask, step.name);
  const auto decided = again ? std::optional(*again) : std::nullopt;
  if (decided == step.placement) return {};
  return Error(Errc::Internal,
               fmt::format("pod {} on node {}: was {}, is now {}", step.ask.pod.uid, step.name,
                           decision_text(step.placement), decision_text(decided)));
}

std::string tenant_text(const Tenant& tenant) {
  return fmt::format(" {}:{}:{}:{}", tenant.pod.uid, tenant.priority, tenant.mib, tenant.cores);
}

}  // namespace

bool LogEntry::operator==(const LogEntry& other) const {
  return kind == other.kind && name == other.name && facts == other.facts && ask == other.ask &&
         placement == other.placement && quota.mib == other.quota.mib &&
         quota.cores == other.quota.cores;
}

Status replay(Cluster& cluster, const LogEntry& step) {
  switch (step.kind) {
    case LogEntry::Kind::Start: cluster = Cluster(); return {};
    case LogEntry::Kind::Node: cluster.set_node(step.facts); return {};
    case LogEntry::Kind::NodeGone: cluster.remove_node(step.name); return {};
    case LogEntry::Kind::Pod:
      cluster.set_pod(step.ask, step.name, step.placement ? &*step.placement : nullptr);
      return {};
    case LogEntry::Kind::PodGone: cluster.remove_pod(step.name); return {};
    case LogEntry::Kind::Quota: cluster.set_quota(step.name, step.quota); return {};
    case LogEntry::Kind::Reserve: return decide_again(cluster, step);
    case LogEntry::Kind::Release: cluster.release(step.name); return {};
  }
  return {};
}

std::string to_string(const Cluster& cluster) {
  std::string text;
  for (const auto& name : cluster.nodes()) {
    const auto view = cluster.view(name);
    text += fmt::format("{} unit {} whole {}\n", name, view.facts.unit_mib, view.facts.whole_gpus);
    for (const auto& card : view.cards) {
      text += fmt::format("  {} {}/{} cores {} slots {}", card.facts.uuid.text, card.used_mib,
                          card.facts.mib, card.used_cores, card.used_slots);
      for (const auto& tenant : card.tenants) text += tenant_text(tenant);
      text += '\n';
    }
    if (!view.unplaced.empty()) text += "  somewhere";
    for (const auto& tenant : view.unplaced) text += tenant_text(tenant);
    if (!view.unplaced.empty()) text += '\n';
  }
  return text;
}

}  // namespace gantry::placement
