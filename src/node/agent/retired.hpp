// SPDX-License-Identifier: Apache-2.0
// What is left of an agent in a pod that has handed everything to the next one: it waits to be
// ended. If it ended by itself, the kubelet would start its container again, and that would take
// over in its turn, for as long as the rolling update leaves the old pod there.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string_view>

namespace gantry::agent {

inline constexpr std::string_view kRetiredCommand = "retired-agent";

// This process becomes one: everything is closed that is not for the next program. Comes back only
// with an error. `port`: where the pod's probes ask; 0 = nowhere.
Status retire(std::int64_t port);

// `gantry retired-agent PORT`: until SIGTERM or SIGINT.
int retired_main(int argc, char** argv);

}  // namespace gantry::agent
