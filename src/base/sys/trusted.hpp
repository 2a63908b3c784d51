// SPDX-License-Identifier: Apache-2.0
// Files that decide what containers get: nobody but root may have written them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::sys {

// Denied, with the command that helps, for what a user other than root, `owner` or ourselves could
// change. `owner` is who has the machine's root directory: a simulated tree is its maker's, and in
// a user namespace root's own files are shown as nobody's.
Status check_trusted(std::uint32_t uid, std::uint32_t mode, std::uint32_t owner,
                     std::string_view shown);

// A whole regular file, checked on the descriptor it is read from, and so are the directories above
// it: who can rename them is the author of the file.
Result<std::string> read_trusted(const Host& host, std::string_view path, std::size_t limit);

}  // namespace gantry::sys
