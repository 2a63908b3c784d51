// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vm/vfio/plan.hpp"

namespace gantry::vfio {

// Everything that speaks against the plan, blockers first.
void add_findings(const MachineState& state, Plan& plan);

}  // namespace gantry::vfio
