// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "container/driver_dir/layout_internal.hpp"
#include "container/plan/driver_paths.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_dir {
namespace {

constexpr std::size_t kManifestLimit = std::size_t{1} << 20;
constexpr std::size_t kDigestLength = 16;

}  // namespace

std::string_view version_in_name(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || name.size() - dash - 1 != kDigestLength)
    return {};
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const auto digest = name.substr(dash + 1);
  const auto version = name.substr(0, dash);
  const auto is_version = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  if (!std::all_of(digest.begin(), digest.end(), is_hex) || version.front() == '.' ||
      !std::all_of(version.begin(), version.end(), is_version)) {
    return {};
  }
  return version;
}

Status check_complete(const sys::Host& host, std::string_view name) {
  const auto path = fmt::format("{}/{}/{}", plan::kDriverDirectories, name, plan::kManifestName);
  const auto text = host.read(path, kManifestLimit);
  // The manifest starts with the directory's name and is written last: see publish.cpp.
  if (text.ok() && text->starts_with(fmt::format("{{\n  \"name\": {},\n", json::quote(name))) &&
      text->ends_with("}\n")) {
    return {};
  }
  return Error(Errc::Corrupt,
               fmt::format("{} is incomplete{}{}", host.outside(path), text.ok() ? "" : ": ",
                           text.ok() ? "" : text.error().text()))
      .advise("run `gantry cdi refresh`");
}

}  // namespace gantry::driver_dir
