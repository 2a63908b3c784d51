// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace gantry::fence_mount {

enum class BindMode : std::uint8_t { Writable, ReadOnly, NoDevices };

Result<sys::UniqueFd> open_source(const std::string& path);
Result<sys::UniqueFd> open_optional(const std::string& path);  // nothing for ""

// Mounts what the descriptor is over what `place` is. Opening the place sees through mounts that
// are already there, so an earlier bind is what gets covered.
Status bind_over(int source, const std::string& place, BindMode kind);

// The directory, to be mounted on. Where it is not there and cannot be made (no root), the nearest
// directory above it that is there gets a copy in memory in which everything is where it was, and
// it is made in that.
Status make_mount_point(const std::string& directory);

}  // namespace gantry::fence_mount
