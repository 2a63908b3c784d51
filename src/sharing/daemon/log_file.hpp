// SPDX-License-Identifier: Apache-2.0
// The file of a keeper that nobody watches: it is added to, and no larger than some size; what was
// in it before is in a second one beside it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace gantry::daemon {

inline constexpr std::uint64_t kMaxLogBytes = std::uint64_t{1} << 20;

// For adding to; made where it is not there, with its directory.
Result<sys::UniqueFd> open_log(const std::string& path, std::uint64_t most = kMaxLogBytes);

// `fd` goes on in a new file where it is the one of that path and has become too large. Nothing
// else is touched: a terminal, a pipe, somebody's own file.
void rotate_if_large(int fd, const std::string& path, std::uint64_t most = kMaxLogBytes);

// The end of that file, of what came after the first `begin` bytes; for an error message.
std::string log_tail(const std::string& path, std::uint64_t begin);

}  // namespace gantry::daemon
