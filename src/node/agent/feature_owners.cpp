// SPDX-License-Identifier: Apache-2.0
#include "node/agent/feature_owners.hpp"

#include <fmt/format.h>

namespace gantry::agent {
namespace {}  // namespace

std::vector<labels::NodeFeatureOwner> daemon_set_owners(const json::Document& pod) {
  const auto metadata = pod["metadata"];
  for (const auto owner : metadata["ownerReferences"]) {
    if (owner["kind"].string() != "DaemonSet") continue;
    return {{.api_version = owner["apiVersion"].string_or_empty(),
             .kind = "DaemonSet",
             .name = owner["name"].string_or_empty(),
             .uid = owner["uid"].string_or_empty(),
             .controller = true},
            {.api_version = "v1",
             .kind = "Pod",
             .name = metadata["name"].string_or_empty(),
             .uid = metadata["uid"].string_or_empty()}};
  }
  return {};
}

Result<std::vector<labels::NodeFeatureOwner>> find_owners(kube::Api& api,
                                                          const std::string& name_space,
                                                          const std::string& pod) {
  if (pod.empty()) return std::vector<labels::NodeFeatureOwner>{};
  GANTRY_TRY(
      const auto object,
      api.get(kube::pod_path(name_space, pod)).in("finding the owner of the NodeFeature object"));
  return daemon_set_owners(object);
}

std::string features_path(const std::string& name_space) {
  return fmt::format("/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{}/nodefeatures",
                     kube::percent_encode(name_space));
}

Status apply_features(kube::Api& api, const FeatureObject& object, const labels::Labels& labels) {
  const auto path = fmt::format("{}/{}", features_path(object.name_space),
                                kube::percent_encode(labels::node_feature_name(object.node)));
  GANTRY_TRY(const auto done,
             api.patch(path, kube::Patch::Apply,
                       labels::to_node_feature(labels, {.node = object.node,
                                                        .name_space = object.name_space,
                                                        .owners = object.owners})));
  return {};
}

}  // namespace gantry::agent
