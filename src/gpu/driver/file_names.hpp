// SPDX-License-Identifier: Apache-2.0
// Parses the driver's file names and the versions in them.
#pragma once

#include "gpu/model/driver_version.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::driver {

using model::is_driver_version;

struct LibraryName {
  std::string_view stem;     // "libcuda"
  std::string_view version;  // "580.159.04", "1", "" for libcuda.so
};
// nullopt unless the name is lib*.so or lib*.so.VERSION.
std::optional<LibraryName> parse_library_name(std::string_view name);

bool is_below(std::string_view path, std::string_view directory);  // or the directory itself

}  // namespace gantry::driver
