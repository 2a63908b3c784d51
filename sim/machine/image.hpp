// SPDX-License-Identifier: Apache-2.0
// A machine as the simulated libraries read it (image.h), and the library file that contains it.
#pragma once

#include "base/core/result.hpp"
#include "sim/driver/image.h"
#include "sim/machine/machine.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace gantry::sim {

// The image begins at a page of the file, so that it can be mapped.
inline constexpr std::size_t kImageAlignment = 4096;

using Image = std::unique_ptr<gantry_sim_image>;  // some 200 KiB: never on the stack

Result<Image> make_image(const Machine& machine);

// [ library ][ padding ][ image ][ footer ]
std::string append_image(std::string_view library, const gantry_sim_image& image);

// The image at the end of a library file. Corrupt if there is none.
Result<Image> find_image(std::string_view file);

std::uint32_t driver_major(std::string_view version);  // "580.159.04" -> 580

}  // namespace gantry::sim
