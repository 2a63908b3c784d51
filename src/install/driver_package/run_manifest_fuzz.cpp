// SPDX-License-Identifier: Apache-2.0
// Any bytes as the manifest of a package. No file of it leads out of the package.
#include "base/core/text.hpp"
#include "install/driver_package/manifest.hpp"

#include <algorithm>

namespace {

bool climbs(std::string_view path) {
  const auto parts = gantry::split(path, '/');
  return std::ranges::find(parts, "..") != parts.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::driver_package;  // NOLINT: a fuzz target
  const auto manifest = parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!manifest.ok()) return 0;
  GANTRY_ASSERT(!manifest->files.empty() && manifest->files.size() <= kManifestFiles);
  for (const auto& file : manifest->files) {
    GANTRY_ASSERT(!file.path.empty() && file.path.front() != '/' && !climbs(file.path));
    GANTRY_ASSERT(!climbs(file.directory));
    GANTRY_ASSERT(file.mode <= 07777 && (file.is_link() == !file.link_target.empty()));
    GANTRY_ASSERT(file.link_target.empty() || file.link_target.front() != '/');
  }
  return 0;
}
