// SPDX-License-Identifier: Apache-2.0
// Units of memory.
#pragma once

#include <cstdint>

namespace gantry {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10U;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

}  // namespace gantry
