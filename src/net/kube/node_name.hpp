// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gantry::kube {

// This machine's name as a node: `given` where it is not empty, then NODE_NAME, which a DaemonSet
// sets from spec.nodeName, then the host's name as a kubelet takes it, in small letters.
std::string node_name(const std::string& given);

}  // namespace gantry::kube
