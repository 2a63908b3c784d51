// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/document.hpp"

#include <string>

namespace gantry::why {

struct NodeRejection {
  std::string what;    // "taint gpu=x:NoSchedule"; "": the node accepts the pod
  std::string remedy;  // a line for the manifest, or a command
};
NodeRejection node_rejection(json::Value node, json::Value pod);

}  // namespace gantry::why
