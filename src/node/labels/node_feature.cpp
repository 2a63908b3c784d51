// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "node/labels/labels.hpp"

#include <fmt/format.h>

namespace gantry::labels {
namespace {

std::string owner_json(const NodeFeatureOwner& owner) {
  return fmt::format(R"({{"apiVersion":{},"kind":{},"name":{},"uid":{}{}}})",
                     json::quote(owner.api_version), json::quote(owner.kind),
                     json::quote(owner.name), json::quote(owner.uid),
                     owner.controller ? R"(,"controller":true)" : "");
}

}  // namespace

std::string node_feature_name(std::string_view node) {
  return fmt::format("nvidia-features-for-{}", node);
}

std::string to_node_feature(const Labels& labels, const NodeFeatureOptions& options) {
  std::string map;
  for (const auto& [key, value] : labels) {
    map += fmt::format("{}{}:{}", map.empty() ? "" : ",", json::quote(key), json::quote(value));
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
      json::quote(node_feature_name(options.node)), json::quote(options.name_space),
      json::quote(options.node), owners, map);
}

}  // namespace gantry::labels
