// SPDX-License-Identifier: Apache-2.0
// Writes that the kernel may never finish, such as a write to `driver/unbind` of a GPU that is in
// use.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <string_view>

namespace gantry::sys {

inline constexpr std::size_t kMaxKernelWrite = 4096;  // the kernel's own limit for one write

// Writes `text` with one write to a file of sysfs or procfs, in a process of its own. The file must
// exist. Opening and writing both happen in that process, so neither can block the caller for
// longer than the deadline.
//
// Returns Timeout if the write did not return in time. The writer stays in the kernel until the
// kernel lets it go: it is not a child of ours, holds none of our descriptors (so none of our
// locks), and is not waited for. A wait that signals can interrupt ends one second after
// twice the deadline. What the write does later cannot be known: read the state again before
// another write.
//
// Returns the error of open or write, with its errno, if one of them failed. Any thread may call
// it, but it blocks until the deadline: never call it on the agent's loop or under a lock.
Status write_with_deadline(const Host& host, std::string_view path, std::string_view text,
                           std::chrono::milliseconds deadline);

}  // namespace gantry::sys
