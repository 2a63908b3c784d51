// SPDX-License-Identifier: Apache-2.0
// Finds every file under which a program of this machine could load the driver's libcuda and
// libnvidia-ml. The fence must cover all of them, so that no search path or absolute path avoids
// it.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <vector>

namespace gantry::fence_mount {

// More than any real machine has; an image with more is hostile or broken.
inline constexpr std::size_t kMaxDriverLibraries = 512;
// We search as root and outside the container's limits, so its search path must not decide how long
// that takes.
inline constexpr std::size_t kMaxSearchedDirectories = 32'768;

// Real files, symlinks resolved, inside the host's root; each once, sorted.
struct DriverLibraries {
  std::vector<std::string> cuda;
  std::vector<std::string> nvml;
  bool operator==(const DriverLibraries&) const = default;
};

// Searches the loader's default directories and their processor-specific subdirectories, the
// directories of ld.so.cache, /usr/local/cuda*/compat, separate driver directories, the prepared
// directories, and `more` (LD_LIBRARY_PATH, library directories of an environment). Skips linker
// stubs (directories named stubs), which call nothing, and files that cannot be read, because they
// cannot be loaded. Invalid if there are more than kMaxDriverLibraries files, or more than
// kMaxSearchedDirectories directories to search.
Result<DriverLibraries> find_driver_libraries(const sys::Host& host,
                                              const std::vector<std::string>& more = {});

// Splits "/a:b::/c" like the loader; relative and empty entries are resolved against `here`.
std::vector<std::string> split_search_path(std::string_view value, std::string_view here);

}  // namespace gantry::fence_mount
