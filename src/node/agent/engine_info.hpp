// SPDX-License-Identifier: Apache-2.0
// Finds the container engine that the kubelet of this node uses.
#pragma once

#include "base/sys/host.hpp"

#include <string>

namespace gantry::agent {

struct EngineInfo {
  std::string name = "no engine answers";  // "containerd v2.0.1"
  bool has_cdi = false;
};

// `socket` is inside the host's root; "" tries the usual sockets of containerd, CRI-O, K3s, RKE2
// and microk8s. Blocks for at most half a second.
EngineInfo detect_engine(const sys::Host& host, const std::string& socket);

}  // namespace gantry::agent
