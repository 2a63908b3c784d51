// SPDX-License-Identifier: Apache-2.0
// Why a node rejects a pod: taints, selectors, affinity, a cordon.
#include "base/core/text.hpp"
#include "node/why/node_rejection_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace gantry::why {
namespace {

// Text from a pod may become part of a command that the user pastes.
bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == '_' ||
           letter == '/';
  });
}

bool tolerates(json::Value pod, json::Value taint) {
  for (const auto toleration : pod["spec"]["tolerations"]) {
    const auto key = toleration["key"].string().value_or("");
    const auto effect = toleration["effect"].string().value_or("");
    const bool exists = toleration["operator"].string().value_or("Equal") == "Exists";
    const bool names = key.empty() ? exists : taint["key"].string() == key;
    const bool fits =
        exists || toleration["value"].string().value_or("") == taint["value"].string().value_or("");
    if (names && fits && (effect.empty() || taint["effect"].string() == effect)) return true;
  }
  return false;
}

std::optional<NodeRejection> taint_of(json::Value node, json::Value pod) {
  for (const auto taint : node["spec"]["taints"]) {
    const auto key = taint["key"].string().value_or("");
    const auto effect = taint["effect"].string().value_or("");
    if (effect == "PreferNoSchedule" || tolerates(pod, taint)) continue;
    // A cordon, which is reported separately.
    if (key == "node.kubernetes.io/unschedulable") continue;
    NodeRejection refusal{
        .what = fmt::format("taint {}={}:{}", key, taint["value"].string().value_or(""), effect)};
    if (is_plain(key))
      refusal.remedy = fmt::format(
          "add to the pod: tolerations: [{{key: {}, operator: Exists, effect: {}}}]", key, effect);
    if (key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable")
      refusal.remedy = "the node's kubelet does not answer; on the node: systemctl status kubelet";
    return refusal;
  }
  return std::nullopt;
}

std::optional<NodeRejection> selector_of(json::Value node, json::Value pod) {
  for (const auto wanted : pod["spec"]["nodeSelector"]) {
    const auto key = wanted.key();
    const auto value = wanted.string().value_or("");
    if (node["metadata"]["labels"][key].string() == value) continue;
    NodeRejection refusal{.what = fmt::format("no label {}={}", key, value),
                          .remedy = "change the pod's nodeSelector"};
    const auto name = node["metadata"]["name"].string().value_or("");
    if (is_plain(key) && is_plain(value) && is_plain(name))
      refusal.remedy = fmt::format("change the pod's nodeSelector, or: kubectl label node {} {}={}",
                                   name, key, value);
    return refusal;
  }
  return std::nullopt;
}

bool matches(json::Value expression, const std::optional<std::string>& value) {
  const auto op = expression["operator"].string().value_or("");
  const auto values = expression["values"].strings();
  const bool among = value && std::find(values.begin(), values.end(), *value) != values.end();
  if (op == "In") return among;
  if (op == "NotIn") return !among;
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  const auto own = parse_i64(value.value_or(""));
  const auto bound = parse_i64(values.empty() ? "" : values.front());
  if (!own || !bound) return false;
  return op == "Gt" ? *own > *bound : op == "Lt" && *own < *bound;
}

bool matches_term(json::Value term, json::Value node) {
  for (const auto expression : term["matchExpressions"]) {
    const auto key = expression["key"].string().value_or("");
    if (!matches(expression, node["metadata"]["labels"][key].string())) return false;
  }
  for (const auto expression : term["matchFields"]) {
    if (!matches(expression, node["metadata"]["name"].string())) return false;
  }
  return term["matchExpressions"].size() + term["matchFields"].size() > 0;
}

std::optional<NodeRejection> affinity_of(json::Value node, json::Value pod) {
  const auto terms = pod["spec"]["affinity"]["nodeAffinity"]
                        ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  if (terms.size() == 0) return std::nullopt;
  for (const auto term : terms) {
    if (matches_term(term, node)) return std::nullopt;
  }
  const auto first = terms.element(0)["matchExpressions"].element(0);
  return NodeRejection{
      .what = fmt::format("node affinity {} {} [{}]", first["key"].string().value_or(""),
                          first["operator"].string().value_or(""),
                          fmt::join(first["values"].strings(), ", ")),
      .remedy = "change the pod's nodeAffinity, or label the node as it asks"};
}

}  // namespace

NodeRejection node_rejection(json::Value node, json::Value pod) {
  if (node["spec"]["unschedulable"].boolean() == true) {
    const auto name = node["metadata"]["name"].string().value_or("");
    return {.what = "cordoned", .remedy = is_plain(name) ? "kubectl uncordon " + name : ""};
  }
  if (auto taint = taint_of(node, pod)) return *std::move(taint);
  if (auto selector = selector_of(node, pod)) return *std::move(selector);
  return affinity_of(node, pod).value_or(NodeRejection{});
}

}  // namespace gantry::why
