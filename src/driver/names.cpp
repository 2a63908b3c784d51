// SPDX-License-Identifier: Apache-2.0
#include "driver/names.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace gantry::driver {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_driver_version(std::string_view text) {
  if (text.size() > 32) return false;
  const auto parts = split(text, '.');
  if (parts.size() < 2 || parts.size() > 4) return false;
  if (!std::all_of(parts.begin(), parts.end(), all_digits)) return false;
  return parts[0].size() >= 3 && parts[0].size() <= 4 && parts[0][0] != '0';
}

std::optional<LibraryName> parse_library_name(std::string_view name) {
  if (!name.starts_with("lib")) return std::nullopt;
  if (name.ends_with(".so")) return LibraryName{name.substr(0, name.size() - 3), {}};
  const auto at = name.find(".so.");
  if (at == std::string_view::npos) return std::nullopt;
  return LibraryName{name.substr(0, at), name.substr(at + 4)};
}

std::string version_in_nvrm_line(std::string_view version_file) {
  for (const auto line : lines(version_file)) {
    if (!line.starts_with("NVRM version:")) continue;
    for (const auto word : split(line, ' ')) {
      if (is_driver_version(word)) return std::string(word);
    }
  }
  return {};
}

std::string_view directory_of(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return "/";
  return path.substr(0, slash);
}

std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == "/" || path == directory) return true;
  return path.starts_with(directory) && path.size() > directory.size() &&
         path[directory.size()] == '/';
}

}  // namespace gantry::driver
