// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "node/labels/labels.hpp"

#include <fmt/format.h>

namespace gantry::labels {
namespace {

std::string owner_json(const NodeFeatureOwner& owner) {
  return fmt::format(R"({{"apiVersion":{},"kind":{},"name":{},"uid":{}{}}})",
                     json::quoted(owner.api_version), json::quoted(owner.kind),
                     json::quoted(owner.name), json::quoted(owner.uid),
                     owner.controller ? R"(,"controller":true)" : "");
}

}  // namespace

std::string node_feature_name(std::string_view node) {
  return fmt::format("nvidia-features-for-{}", node);
}

std::string to_node_feature(const Labels& labels, const NodeFeatureOptions& options) {
  std::string map;
  for (const auto& [key, value] : labels) {
    map += fmt::format("{}{}:{}", map.empty() ? "" : ",", json::quoted(key), json::quoted(value));
  }
  std::string owners;
  for (const auto& owner : options.owners) {
    if (!owners.empty()) owners += ',';
    owners += owner_json(owner);
  }
  if (!owners.empty()) owners = fmt::format(R"(,"ownerReferences":[{}])", owners);
  return fmt::format(
      R"({{"apiVersion":"nfd.k8s-sigs.io/v1alpha1","kind":"NodeFeature","metadata":{{"name":{},)"
      R"("namespace":{},"labels":{{"nfd.node.kubernetes.io/node-name":{}}}{}}},)"
      R"("spec":{{"features":{{"flags":{{}},"attributes":{{}},"instances":{{}}}},"labels":{{{}}}}}}})",
      json::quoted(node_feature_name(options.node)), json::quoted(options.name_space),
      json::quoted(options.node), owners, map);
}

}  // namespace gantry::labels
