// SPDX-License-Identifier: Apache-2.0
#include "container/driver_dir/current.hpp"

#include "container/driver_dir/layout_internal.hpp"
#include "container/plan/driver_paths.hpp"

#include <fmt/format.h>

namespace gantry::driver_dir {

Result<CurrentDriver> current(const sys::Host& host) {
  const auto link = host.link(plan::kCurrentDriverLink);
  if (!link.ok()) {
    return Error(Errc::NotFound,
                 fmt::format("the driver's files are not prepared ({})", link.error().text()))
        .advise("run `gantry cdi refresh`");
  }
  const auto version = version_in_name(*link);
  if (version.empty()) {
    return Error(Errc::Corrupt,
                 fmt::format("{} points to \"{}\", which is not a prepared directory",
                             host.outside(plan::kCurrentDriverLink), *link))
        .advise("run `gantry cdi refresh`");
  }
  CurrentDriver found{.name = *link,
                      .directory = fmt::format("{}/{}", plan::kDriverDirectories, *link),
                      .version = std::string(version)};
  GANTRY_CHECK(check_complete(host, found.name));
  return found;
}

bool serves_driver(const CurrentDriver& current, std::string_view driver_version) {
  return !driver_version.empty() && current.version == driver_version;
}

std::string simulated_engine_root(const sys::Host& host) {
  return !host.is_live() && host.exists("/.gantry-sim") ? host.root() : "";
}

}  // namespace gantry::driver_dir
