// SPDX-License-Identifier: Apache-2.0
// Finds faults in the GPU resources that a pod's spec names. Pure.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"

#include <optional>

namespace gantry::explain {

// Amounts that Kubernetes does not take for a number of GPUs: half a GPU, -1, "one".
std::optional<Step> quantity_fault(json::Value pod);
// Names that no device plugin offers, with the name that was probably meant. Failed for a misspelt
// name; Warning for a name that a plugin may have been configured to offer.
std::optional<Step> name_fault(json::Value pod);
// GPU resources that are not below resources.limits of a container. `object` is the pod, or the
// whole object that was written.
std::optional<Step> misplaced_fault(json::Value object);
// A runtime class in which the pod's GPUs do not work.
std::optional<Step> runtime_fault(json::Value pod);

}  // namespace gantry::explain
