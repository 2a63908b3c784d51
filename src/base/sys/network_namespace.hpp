// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <functional>

namespace gantry::sys {

// Calls `work` in a thread whose sockets belong to a network namespace, and waits for it.
// `name_space` is opened from /proc/PID/ns/net. Denied without CAP_SYS_ADMIN; `work` is not called
// then. The caller's own namespace does not change.
Status in_network_namespace(int name_space, const std::function<void()>& work);

}  // namespace gantry::sys
