// SPDX-License-Identifier: Apache-2.0
// Tells the share daemon that this container belongs to a share, even if its processes never
// attach. A small client without the dependencies that a static program must not have.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace gantry::runtime {

// Denied if this user may not ask the daemon; NotFound, with what helps, if there is no such share.
// If there is, but its daemon does not answer, waits until the watchdog has started it again; Busy
// after `restart`.
Status register_with_share_daemon(
    const sys::Host& host, const std::string& share, std::uint64_t pid,
    std::chrono::milliseconds restart = std::chrono::milliseconds(1'500));

}  // namespace gantry::runtime
