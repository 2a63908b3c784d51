// SPDX-License-Identifier: Apache-2.0
// An agent in a pod that has handed everything to the next agent and waits for its end. It must not
// exit: the kubelet would restart its container, which would then take over again, until the
// rolling update deletes the old pod.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string_view>

namespace gantry::agent {

inline constexpr std::string_view kRetiredCommand = "retired-agent";

// Turns this process into a retired agent; closes everything that the next program does not need.
// Returns only on error. `port`: where the probes of the pod are answered; 0: nowhere.
Status retire(std::int64_t port);

// `gantry retired-agent PORT`: runs until SIGTERM or SIGINT.
int retired_main(int argc, char** argv);

}  // namespace gantry::agent
