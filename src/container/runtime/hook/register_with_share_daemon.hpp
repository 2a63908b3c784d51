// SPDX-License-Identifier: Apache-2.0
// Tells the share daemon that this container belongs to a share, even if its processes never
// attach. A small client without the dependencies that a static program must not have.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <string>

namespace gantry::runtime {

// Denied if this user may not ask the daemon; NotFound, with what helps, if the daemon does not run
// or there is no such share.
Status register_with_share_daemon(const sys::Host& host, const std::string& share,
                                  std::uint64_t pid);

}  // namespace gantry::runtime
