// SPDX-License-Identifier: Apache-2.0
// The simulated libraries and programs as they were built, and the libraries that a machine gets of
// them.
#pragma once

#include "base/core/result.hpp"
#include "sim/driver/image.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gantry::sim {

struct SimulatedFiles {
  std::string cuda, nvml;                       // contents of the simulated libraries
  std::map<std::string, std::string> programs;  // and of the programs, by name
};

// Everything is empty for "".
Result<SimulatedFiles> read_simulated_files(const std::string& directory);

// The content of a driver's library ("libcuda.so.1" or a longer name): libcuda and libnvidia-ml are
// the simulated ones with the image, without functions that are newer than the driver's branch;
// another one is an empty library.
std::string driver_library_content(std::string_view library, std::string_view soname,
                                   std::uint32_t branch, const struct gantry_sim_image& image,
                                   const SimulatedFiles& files);

}  // namespace gantry::sim
