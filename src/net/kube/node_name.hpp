// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gantry::kube {

// The node name of this machine: `given` if it is not empty, else NODE_NAME, which a DaemonSet sets
// from spec.nodeName, else the host name in lower case, as the kubelet uses it.
std::string node_name(const std::string& given);

}  // namespace gantry::kube
