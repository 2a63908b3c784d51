// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace gantry::fence_mount {

enum class BindMode : std::uint8_t { Writable, ReadOnly, NoDevices };

Result<sys::UniqueFd> open_source(const std::string& path);
Result<sys::UniqueFd> open_optional(const std::string& path);  // an empty descriptor for ""

// Mounts the file or directory of the descriptor over `place`. Opening `place` follows existing
// mounts, so an earlier bind mount is covered.
Status bind_over(int source, const std::string& place, BindMode kind);

// Makes sure that the directory exists as a mount point. If it cannot be created (not root), mounts
// an in-memory copy, with the same entries, over the nearest existing parent and creates it there.
Status make_mount_point(const std::string& directory);

}  // namespace gantry::fence_mount
