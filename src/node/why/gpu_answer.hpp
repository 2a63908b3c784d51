// SPDX-License-Identifier: Apache-2.0
// Whether the GPUs that a pod holds answer now. The node's condition GPUsHealthy is older, and only
// Gantry's agent writes it.
#pragma once

#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "cluster/explain/explanation.hpp"
#include "gpu/model/inventory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::why {

// Compares the GPUs of the pod with what the driver says. Pure.
explain::Step gpu_answer_step(const std::vector<model::GpuUuid>& uuids,
                              const model::Inventory& inventory);

// The same for the GPUs in the kubelet's checkpoint. nullopt: it has no whole GPU for the pod.
std::optional<explain::Step> gpu_answer_step(const sys::Host& machine,
                                             const std::string& device_plugins, json::Value pod);

}  // namespace gantry::why
