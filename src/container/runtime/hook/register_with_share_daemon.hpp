// SPDX-License-Identifier: Apache-2.0
// A word to the keeper of shares: this container is one of the share's, whether its processes
// attach or not. What the keeper's own client does, without what a static program must not have.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <string>

namespace gantry::runtime {

// Denied for who may not ask it; NotFound, with what helps, where there is no keeper or no such
// share.
Status register_with_share_daemon(const sys::Host& host, const std::string& share,
                                  std::uint64_t pid);

}  // namespace gantry::runtime
