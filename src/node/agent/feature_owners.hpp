// SPDX-License-Identifier: Apache-2.0
// The owners of the node's NodeFeature object: our DaemonSet and our pod. When they are deleted,
// the cluster deletes the object and its labels.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/api.hpp"
#include "node/labels/labels.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

// Empty if no DaemonSet owns the pod: such a pod comes and goes, but the labels must stay.
std::vector<labels::NodeFeatureOwner> daemon_set_owners(const json::Document& pod);

// Reads our pod from the API server and returns its owners.
Result<std::vector<labels::NodeFeatureOwner>> find_owners(kube::Api& api,
                                                          const std::string& name_space,
                                                          const std::string& pod);

struct FeatureObject {
  std::string node;
  std::string name_space;
  std::vector<labels::NodeFeatureOwner> owners;
};
Status apply_features(kube::Api& api, const FeatureObject& object, const labels::Labels& labels);
std::string features_path(const std::string& name_space);  // path of the objects of a namespace

}  // namespace gantry::agent
