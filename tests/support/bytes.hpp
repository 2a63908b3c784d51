// SPDX-License-Identifier: Apache-2.0
// Units of memory for tests.
#pragma once

#include <cstdint>

namespace gantry {

inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

}  // namespace gantry
