// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/cdi/spec.hpp"

#include <string>
#include <vector>

namespace gantry::cdi {

// Why engines would refuse the specification, one sentence each; empty when they would load it.
std::vector<std::string> validate(const Spec& spec);

}  // namespace gantry::cdi
