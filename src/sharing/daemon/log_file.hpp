// SPDX-License-Identifier: Apache-2.0
// The log file of a daemon that runs in the background. Lines are appended up to a maximum size;
// then the old content moves to a second file in the same directory.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace gantry::daemon {

inline constexpr std::uint64_t kMaxLogBytes = std::uint64_t{1} << 20;

// Opens the file for appending. Creates it and its directory if necessary.
Result<sys::UniqueFd> open_log(const std::string& path, std::uint64_t most = kMaxLogBytes);

// If `fd` is the file at this path and has become too large, `fd` continues in a new file. Does
// nothing for a terminal, a pipe or another file.
void rotate_if_large(int fd, const std::string& path, std::uint64_t most = kMaxLogBytes);

// Returns the end of the file, without its first `begin` bytes, for an error message.
std::string log_tail(const std::string& path, std::uint64_t begin);

}  // namespace gantry::daemon
