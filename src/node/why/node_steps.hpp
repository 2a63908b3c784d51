// SPDX-License-Identifier: Apache-2.0
// The links that only the pod's own node shows: plugin registration, the kubelet's allocation, and
// the health of what it allocated.
#pragma once

#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "node/why/explanation.hpp"
#include "node/why/pod_steps.hpp"

#include <string>

namespace gantry::why {

// The kubelet takes plugins, and one that offers what the pod wants answers on its socket.
Step registration_step(const sys::Host& machine, const std::string& directory,
                       const std::string& resource);

// What the kubelet gave it, by its own record.
Step allocation_step(const sys::Host& machine, const std::string& directory, json::Value pod);

// The node's condition GPUsHealthy says nothing against a GPU that the pod holds. Others' are
// another matter.
Step gpu_health_step(const sys::Host& machine, const std::string& directory, json::Value pod,
                     json::Value node);

}  // namespace gantry::why
