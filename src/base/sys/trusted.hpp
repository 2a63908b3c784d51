// SPDX-License-Identifier: Apache-2.0
// Reads files that decide what containers get. Only root may be able to write them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::sys {

// Returns Denied, with the command that helps, if a user other than root, `owner` or ourselves
// could change the file. `owner` owns the machine's root directory: a simulated tree belongs to the
// user who created it, and in a user namespace root's files appear to belong to `nobody`.
Status check_trusted(std::uint32_t uid, std::uint32_t mode, std::uint32_t owner,
                     std::string_view shown);

// Reads a whole regular file and checks the descriptor that it reads from. Also checks the
// directories above it, because a user who can rename them can replace the file.
Result<std::string> read_trusted(const Host& host, std::string_view path, std::size_t limit);

}  // namespace gantry::sys
