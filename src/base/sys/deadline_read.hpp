// SPDX-License-Identifier: Apache-2.0
// Reads that the kernel may never finish. Some files of sysfs, such as driver_override and
// sriov_numvfs of a PCI function, take the lock of the device: while an unbind waits for a process
// to end, every reader of them waits too and cannot be killed.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sys {

inline constexpr std::size_t kMaxKernelRead = 4096;  // a sysfs attribute has one page

// Reads up to kMaxKernelRead bytes with one read, in a process of its own that opens the file too.
// A regular file outside /sys and /proc, which cannot block in this way, is read without one.
// Returns Timeout if it did not return in time: the reader ends as soon as the kernel lets it go,
// is not a child of ours and holds none of our descriptors. Any thread may call it.
Result<std::string> read_with_deadline(const Host& host, std::string_view path,
                                       std::chrono::milliseconds deadline);

enum class AfterTimeout : std::uint8_t {
  GiveUp,  // the files have one lock: those after the first that timed out fail as it did
  GoOn     // each has its own lock: another process reads the rest, with the deadline again
};

// The same for several files, with one process for all of them: a result for each path, in order.
// The deadline is for all of them together.
std::vector<Result<std::string>> read_with_deadline(const Host& host,
                                                    std::span<const std::string> paths,
                                                    std::chrono::milliseconds deadline,
                                                    AfterTimeout after_timeout);

}  // namespace gantry::sys
