// SPDX-License-Identifier: Apache-2.0
// Plans as JSON, for programs.
#pragma once

#include "base/json/writer.hpp"
#include "vm/vfio/plan.hpp"

namespace gantry::vfio {

void write_plan(json::Writer& out, const Plan& plan);  // one object
void write_holder(json::Writer& out, const Holder& holder);

}  // namespace gantry::vfio
