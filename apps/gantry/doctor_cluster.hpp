// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/engine/check.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

struct ClusterFlags {
  std::string kubeconfig;
  std::string node;
};

// What the API server has of this node, when a check wants it and it may be asked: a kubeconfig was
// named, we are in a pod, or this machine has a kubelet. About another tree (--root) nobody is
// asked unless one of the first two holds.
std::optional<doctor::ClusterView> query_cluster(const ClusterFlags& flags, const sys::Host& host,
                                                 const std::vector<const doctor::Check*>& checks);

}  // namespace gantry::cli
