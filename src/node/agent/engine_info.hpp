// SPDX-License-Identifier: Apache-2.0
// Which container engine the kubelet of this node uses, as far as the agent must know.
#pragma once

#include "base/sys/host.hpp"

#include <string>

namespace gantry::agent {

struct EngineInfo {
  std::string name = "no engine answers";  // "containerd v2.0.1"
  bool has_cdi = false;
};

// `socket`: "" = where containerd, CRI-O, K3s, RKE2 and microk8s have theirs; inside the host's
// root. Blocks for at most half a second.
EngineInfo detect_engine(const sys::Host& host, const std::string& socket);

}  // namespace gantry::agent
