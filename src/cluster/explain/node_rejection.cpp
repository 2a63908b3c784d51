// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/node_rejection.hpp"

#include "base/core/nearest.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace gantry::explain {
namespace {

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
    if (is_plain_word(key))
      refusal.remedy = fmt::format(
          "add to the pod: tolerations: [{{key: {}, operator: Exists, effect: {}}}]", key, effect);
    if (key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable")
      refusal.remedy = "the node's kubelet does not answer; on the node: systemctl status kubelet";
    return refusal;
  }
  return std::nullopt;
}

// The label of the node whose key is the wanted one with another value, or comes close to it.
void find_near_label(UnmetLabel& unmet, json::Value node) {
  constexpr std::size_t kMaxChanges = 2;
  constexpr std::size_t kMaxKeyBytes =
      317;  // a prefix, a slash and a name, as Kubernetes limits it
  auto least = std::min(kMaxChanges, unmet.wanted_key.size() / 3) + 1;
  if (unmet.wanted_key.size() > kMaxKeyBytes) return;
  for (const auto label : node["metadata"]["labels"]) {
    const auto key = label.key();
    if (key.size() > unmet.wanted_key.size() + kMaxChanges) continue;
    const auto changes = edit_distance(to_lower(key), to_lower(unmet.wanted_key));
    if (changes >= least) continue;
    least = changes;
    unmet.near_key = key;
    unmet.near_value = label.string_or_empty();
    unmet.distance = changes;
  }
}

std::optional<UnmetLabel> unmet_selector(json::Value node, json::Value pod) {
  for (const auto wanted : pod["spec"]["nodeSelector"]) {
    const auto key = wanted.key();
    const auto value = wanted.string().value_or("");
    if (node["metadata"]["labels"][key].string() == value) continue;
    return UnmetLabel{
        .wanted = fmt::format("{}={}", key, value), .wanted_key = key, .wanted_value = value};
  }
  return std::nullopt;
}

std::string near_words(const UnmetLabel& unmet) {
  return unmet.near_key.empty() ? ""
                                : fmt::format(" (it has {}={})", unmet.near_key, unmet.near_value);
}

std::optional<NodeRejection> selector_of(json::Value node, json::Value pod) {
  auto unmet = unmet_selector(node, pod);
  if (!unmet) return std::nullopt;
  find_near_label(*unmet, node);
  NodeRejection refusal{.what = fmt::format("no label {}{}", unmet->wanted, near_words(*unmet)),
                        .remedy = "change the pod's nodeSelector"};
  const auto name = node["metadata"]["name"].string().value_or("");
  if (is_plain_word(unmet->wanted_key) && is_plain_word(*unmet->wanted_value) &&
      is_plain_word(name))
    refusal.remedy =
        fmt::format("change the pod's nodeSelector, or: kubectl label node {} {}{}", name,
                    unmet->wanted, unmet->near_key == unmet->wanted_key ? " --overwrite" : "");
  return refusal;
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

// The first expression of the first term that the node does not meet; none if a term fits.
std::optional<UnmetLabel> unmet_affinity(json::Value node, json::Value pod) {
  const auto terms = pod["spec"]["affinity"]["nodeAffinity"]
                        ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  if (terms.size() == 0) return std::nullopt;
  for (const auto term : terms) {
    if (matches_term(term, node)) return std::nullopt;
  }
  for (const auto expression : terms.element(0)["matchExpressions"]) {
    const auto key = expression["key"].string_or_empty();
    if (matches(expression, node["metadata"]["labels"][key].string())) continue;
    const auto op = expression["operator"].string_or_empty();
    const auto values = expression["values"].strings();
    UnmetLabel unmet{.wanted = fmt::format("{} {} [{}]", key, op, fmt::join(values, ", ")),
                     .wanted_key = key};
    if (op == "In" && !values.empty()) unmet.wanted_value = values.front();
    if (op == "Exists") {
      unmet.wanted = key;
      unmet.wanted_value = "";
    }
    return unmet;
  }
  return UnmetLabel{.wanted = "a field of the node"};
}

std::optional<NodeRejection> affinity_of(json::Value node, json::Value pod) {
  auto unmet = unmet_affinity(node, pod);
  if (!unmet) return std::nullopt;
  find_near_label(*unmet, node);
  return NodeRejection{.what = fmt::format("node affinity {}{}", unmet->wanted, near_words(*unmet)),
                       .remedy = "change the pod's nodeAffinity, or label the node as it asks"};
}

}  // namespace

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == '_' ||
           letter == '/';
  });
}

std::optional<UnmetLabel> unmet_label(json::Value node, json::Value pod) {
  auto unmet = unmet_selector(node, pod);
  if (!unmet) unmet = unmet_affinity(node, pod);
  if (unmet) find_near_label(*unmet, node);
  return unmet;
}

NodeRejection node_rejection(json::Value node, json::Value pod) {
  if (node["spec"]["unschedulable"].boolean() == true) {
    const auto name = node["metadata"]["name"].string().value_or("");
    return {.what = "cordoned", .remedy = is_plain_word(name) ? "kubectl uncordon " + name : ""};
  }
  if (auto taint = taint_of(node, pod)) return *std::move(taint);
  if (auto selector = selector_of(node, pod)) return *std::move(selector);
  return affinity_of(node, pod).value_or(NodeRejection{});
}

}  // namespace gantry::explain
