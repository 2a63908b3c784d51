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

// Reads this node's objects from the API server, if a check needs them and the API server may be
// asked: a kubeconfig was named, the process runs in a pod, or this machine has a kubelet. For
// another tree (--root) the API server is asked only in the first two cases.
std::optional<doctor::ClusterView> query_cluster(const ClusterFlags& flags, const sys::Host& host,
                                                 const std::vector<const doctor::Check*>& checks);

}  // namespace gantry::cli
