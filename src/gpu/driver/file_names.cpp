// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/file_names.hpp"

#include "base/core/text.hpp"

namespace gantry::driver {
std::optional<LibraryName> parse_library_name(std::string_view name) {
  if (!name.starts_with("lib")) return std::nullopt;
  if (name.ends_with(".so")) return LibraryName{name.substr(0, name.size() - 3), {}};
  const auto at = name.find(".so.");
  if (at == std::string_view::npos) return std::nullopt;
  return LibraryName{name.substr(0, at), name.substr(at + 4)};
}

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == "/" || path == directory) return true;
  return path.starts_with(directory) && path.size() > directory.size() &&
         path[directory.size()] == '/';
}

}  // namespace gantry::driver
