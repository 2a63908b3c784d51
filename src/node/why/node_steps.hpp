// SPDX-License-Identifier: Apache-2.0
// The steps that can be checked only on the pod's node: plugin registration, the kubelet's
// allocation, and the health of the allocated devices.
#pragma once

#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "cluster/explain/explanation.hpp"

#include <string>

namespace gantry::why {

// Checks that the kubelet accepts plugins, and that a plugin for the pod's resource answers on its
// socket.
explain::Step registration_step(const sys::Host& machine, const std::string& directory,
                                const std::string& resource);

// Checks what the kubelet allocated, from its checkpoint.
explain::Step allocation_step(const sys::Host& machine, const std::string& directory,
                              json::Value pod);

// Checks that the node's condition GPUsHealthy does not name a GPU of the pod. Other GPUs do not
// matter.
explain::Step gpu_health_step(const sys::Host& machine, const std::string& directory,
                              json::Value pod, json::Value node);

}  // namespace gantry::why
