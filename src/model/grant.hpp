// SPDX-License-Identifier: Apache-2.0
// What the node agent gave to one container of a pod.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gantry::model {

struct Grant {
  std::vector<std::string> devices;  // UUIDs of GPUs and MIG instances
  std::string pod_namespace;         // the rest is for people; "" where it is not known
  std::string pod;
  std::map<std::string, std::vector<std::string>> resources;  // the kubelet's ids by resource
  bool operator==(const Grant&) const = default;
};

}  // namespace gantry::model
