// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/cdi/spec.hpp"

#include <string>
#include <vector>

namespace gantry::cdi {

// The reasons why engines would refuse the specification, one sentence each; empty if they would
// load it.
std::vector<std::string> validate(const Spec& spec);

}  // namespace gantry::cdi
