// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace gantry {

// The clock of deadlines, timers and ages: setting the machine's time does not change it.
using Clock = std::chrono::steady_clock;

}  // namespace gantry
