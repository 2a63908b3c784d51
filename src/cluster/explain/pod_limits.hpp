// SPDX-License-Identifier: Apache-2.0
// The step "The pod asks for GPUs". Pure.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"
#include "cluster/explain/pod_steps.hpp"

namespace gantry::explain {

// Ok with what the pod asks for; Failed if no container that stays asks for a GPU. A pod beside
// others that ask (context.others_ask) may do without one.
Step limits_step(json::Value pod, const SpecContext& context);

}  // namespace gantry::explain
