// SPDX-License-Identifier: Apache-2.0
// Who the node's feature object belongs to: the DaemonSet that runs us and our pod. When they are
// deleted, the cluster removes the object and with it the labels.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/api.hpp"
#include "node/labels/labels.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

// None for a pod that no DaemonSet owns: it comes and goes, and the labels are to stay.
std::vector<labels::NodeFeatureOwner> daemon_set_owners(const json::Document& pod);

// The server's object of our pod, and what it says.
Result<std::vector<labels::NodeFeatureOwner>> find_owners(kube::Api& api,
                                                          const std::string& name_space,
                                                          const std::string& pod);

struct FeatureObject {
  std::string node;
  std::string name_space;
  std::vector<labels::NodeFeatureOwner> owners;
};
Status apply_features(kube::Api& api, const FeatureObject& object, const labels::Labels& labels);
std::string features_path(const std::string& name_space);  // the list of a namespace

}  // namespace gantry::agent
