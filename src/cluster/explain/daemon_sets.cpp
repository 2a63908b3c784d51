// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/daemon_sets.hpp"

#include "cluster/explain/infrastructure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::explain {
namespace {

constexpr std::size_t kMaxDaemonSets = 64;

// A label of a node that comes close is better than none, and a shorter distance is better.
bool is_closer(const UnmetLabel& a, const UnmetLabel& b) {
  if (a.near_key.empty() || b.near_key.empty()) return !a.near_key.empty();
  return a.distance < b.distance;
}

std::string label_command(const std::string& node, const UnmetLabel& unmet) {
  if (!unmet.wanted_value) return "";
  auto value = *unmet.wanted_value;
  if (value.empty()) value = unmet.near_value.empty() ? "true" : unmet.near_value;
  if (!is_plain_word(node) || !is_plain_word(unmet.wanted_key) || !is_plain_word(value)) return "";
  return fmt::format("kubectl label node {} {}={}{}", node, unmet.wanted_key, value,
                     unmet.near_key == unmet.wanted_key ? " --overwrite" : "");
}

bool lacks_pods(json::Value status) {
  return status["currentNumberScheduled"].i64().value_or(0) <
         status["desiredNumberScheduled"].i64().value_or(0);
}

}  // namespace

void GpuDaemonSets::add(json::Value daemon_sets) {
  for (const auto set : daemon_sets["items"]) {
    const auto pod = set["spec"]["template"];
    if (sets_.size() == kMaxDaemonSets || !serves_gpus(pod)) continue;
    auto copy = json::Document::parse(std::string(pod.raw()));
    if (!copy.ok()) continue;
    sets_.push_back({.name_space = set["metadata"]["namespace"].string_or_empty(),
                     .name = set["metadata"]["name"].string_or_empty(),
                     .pod = *std::move(copy),
                     .lacks_pods = lacks_pods(set["status"])});
  }
}

void GpuDaemonSets::compare(json::Value nodes) {
  for (const auto node : nodes["items"]) {
    ++nodes_;
    for (auto& set : sets_) {
      if (set.has_node) continue;
      auto unmet = unmet_label(node, set.pod.root());
      if (!unmet) {
        set.has_node = true;
      } else if (set.unmet.wanted.empty() || is_closer(*unmet, set.unmet)) {
        set.unmet = *std::move(unmet);
        set.node = node["metadata"]["name"].string_or_empty();
      }
    }
  }
}

// Events stay for an hour: that of a DaemonSet which has its pods is over.
void GpuDaemonSets::add_refusals(json::Value events) {
  for (const auto event : events["items"]) {
    auto refusal = pod_refusal(event);
    if (!refusal || refusal->kind != "DaemonSet") continue;
    for (auto& set : sets_) {
      if (set.lacks_pods && set.name == refusal->name && set.name_space == refusal->name_space)
        set.refusal = refusal;
    }
  }
}

bool GpuDaemonSets::explain_refusal(Step& step) const {
  const auto refused = std::find_if(sets_.begin(), sets_.end(),
                                    [](const DaemonSet& set) { return set.refusal.has_value(); });
  if (refused == sets_.end()) return false;
  step.cause += fmt::format(": DaemonSet {}/{} lacks pods, because {}", refused->name_space,
                            refused->name, describe(*refused->refusal));
  step.remedy = remedy_for_refusal(*refused->refusal);
  return true;
}

void GpuDaemonSets::explain(Step& step) const {
  if (explain_refusal(step)) return;
  const DaemonSet* idle = nullptr;
  for (const auto& set : sets_) {
    if (set.has_node || nodes_ == 0) continue;
    if (idle == nullptr || is_closer(set.unmet, idle->unmet)) idle = &set;
  }
  if (idle == nullptr) return;
  const auto& unmet = idle->unmet;
  step.cause += fmt::format(
      ": DaemonSet {}/{} runs on no node, because no node has the label that it asks for: {}",
      idle->name_space, idle->name, unmet.wanted);
  if (!unmet.near_key.empty())
    step.cause += fmt::format("; {} has {}={}", idle->node, unmet.near_key, unmet.near_value);
  std::string edit;
  if (is_plain_word(idle->name_space) && is_plain_word(idle->name))
    edit = fmt::format("kubectl -n {} edit daemonset {}", idle->name_space, idle->name);
  const auto label = label_command(idle->node, unmet);
  const bool misspelt = !unmet.near_key.empty() && unmet.near_key != unmet.wanted_key;
  step.remedy = misspelt ? fmt::format("write {} in the DaemonSet", unmet.near_key)
                         : "change the label in the DaemonSet";
  if (!edit.empty()) step.remedy += fmt::format(" ({})", edit);
  if (!label.empty()) step.remedy += ", or: " + label;
}

}  // namespace gantry::explain
