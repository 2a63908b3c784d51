// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/driver_library.hpp"

#include <fmt/format.h>

namespace gantry::sim {

DriverLibrary driver_library(std::string_view spec, const std::string& directory,
                             const std::string& version) {
  DriverLibrary library{.directory = directory};
  std::string own_version = version;
  if (const auto equals = spec.find('='); equals != std::string_view::npos) {
    own_version = spec.substr(equals + 1);
    spec = spec.substr(0, equals);
  }
  if (const auto slash = spec.rfind('/'); slash != std::string_view::npos) {
    const auto folder = spec.substr(0, slash);
    library.directory =
        folder.starts_with('/') ? std::string(folder) : fmt::format("{}/{}", directory, folder);
    library.in_cache = false;
    spec = spec.substr(slash + 1);
  }
  const auto so = spec.find(".so");
  const std::string base(spec.substr(0, so == std::string_view::npos ? spec.size() : so + 3));
  if (!base.starts_with("lib")) {  // a module such as nvidia_drv.so
    library.file = library.soname = base;
    return library;
  }
  library.dev_link = base;
  library.file = fmt::format("{}.{}", base, own_version);
  library.soname = base.size() == spec.size() ? library.file : std::string(spec);
  return library;
}

}  // namespace gantry::sim
