// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/fence_libraries.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace gantry::backend {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaFence = "libgantry-fence.so";
constexpr const char* kNvmlFence = "libgantry-fence-nvml.so";

}  // namespace

Result<FenceLibraries> find_fence() {
  std::vector<fs::path> places;
  if (const char* named = std::getenv("GANTRY_FENCE_LIBRARIES");
      named != nullptr && *named == '/') {
    places.emplace_back(named);
  } else {
    std::error_code failed;
    const auto beside = fs::read_symlink("/proc/self/exe", failed).parent_path();
    places = {(beside / "../lib/gantry").lexically_normal(),
              (beside / "../lib").lexically_normal()};
  }
  for (const auto& place : places) {
    std::error_code failed;
    if (fs::exists(place / kCudaFence, failed) && fs::exists(place / kNvmlFence, failed))
      return FenceLibraries{(place / kCudaFence).string(), (place / kNvmlFence).string()};
  }
  return Error(Errc::NotFound,
               fmt::format("the fence libraries {} and {} are not in {}; reinstall gantry, or set "
                           "GANTRY_FENCE_LIBRARIES to their directory",
                           kCudaFence, kNvmlFence, places.front().string()));
}

}  // namespace gantry::backend
