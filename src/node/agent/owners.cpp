// SPDX-License-Identifier: Apache-2.0
#include "node/agent/owners.hpp"

#include <fmt/format.h>

namespace gantry::agent {
namespace {

std::string text_of(json::Value value) {
  return value.string().value_or("");
}

}  // namespace

std::vector<labels::NodeFeatureOwner> owners_of(const json::Document& pod) {
  const auto metadata = pod["metadata"];
  for (const auto owner : metadata["ownerReferences"]) {
    if (owner["kind"].string() != "DaemonSet") continue;
    return {{.api_version = text_of(owner["apiVersion"]),
             .kind = "DaemonSet",
             .name = text_of(owner["name"]),
             .uid = text_of(owner["uid"]),
             .controller = true},
            {.api_version = "v1",
             .kind = "Pod",
             .name = text_of(metadata["name"]),
             .uid = text_of(metadata["uid"])}};
  }
  return {};
}

Result<std::vector<labels::NodeFeatureOwner>> find_owners(kube::Api& api,
                                                          const std::string& name_space,
                                                          const std::string& pod) {
  if (pod.empty()) return std::vector<labels::NodeFeatureOwner>{};
  GANTRY_TRY(
      const auto object,
      api.get(kube::pod_path(name_space, pod)).in("finding who the NodeFeature object belongs to"));
  return owners_of(object);
}

std::string features_path(const std::string& name_space) {
  return fmt::format("/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{}/nodefeatures",
                     kube::escaped(name_space));
}

Status apply_features(kube::Api& api, const FeatureObject& object, const labels::Labels& labels) {
  const auto path = fmt::format("{}/{}", features_path(object.name_space),
                                kube::escaped(labels::node_feature_name(object.node)));
  GANTRY_TRY(const auto done,
             api.patch(path, kube::Patch::Apply,
                       labels::to_node_feature(labels, {.node = object.node,
                                                        .name_space = object.name_space,
                                                        .owners = object.owners})));
  return {};
}

}  // namespace gantry::agent
