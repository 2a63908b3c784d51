// SPDX-License-Identifier: Apache-2.0
// Every file under which a program of this machine could find the driver's libcuda and
// libnvidia-ml: what must lead to the fence, so that no search path and no absolute name misses it.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <vector>

namespace gantry::fence_mount {

// No machine has so many; an image that has wants something else.
inline constexpr std::size_t kMaxDriverLibraries = 512;
// We look as root and outside the container's limits: its search path must not say for how long.
inline constexpr std::size_t kMaxSearchedDirectories = 32'768;

// Real files, symlinks resolved, inside the host's root; each once, sorted.
struct DriverLibraries {
  std::vector<std::string> cuda;
  std::vector<std::string> nvml;
  bool operator==(const DriverLibraries&) const = default;
};

// In the loader's own directories and their subdirectories for certain processors, in those of
// ld.so.cache, in /usr/local/cuda*/compat, in drivers' directories of their own, in the prepared
// directories, and in `more`: LD_LIBRARY_PATH, an environment's library directories. Stubs for the
// linker (a directory called stubs) are left alone: they call nothing. What cannot be read cannot
// be loaded. Invalid for more than kMaxDriverLibraries, or where more than kMaxSearchedDirectories
// directories would have to be looked at.
Result<DriverLibraries> find_driver_libraries(const sys::Host& host,
                                              const std::vector<std::string>& more = {});

// "/a:b::/c" as the loader reads it, with `here` for what is relative or empty.
std::vector<std::string> split_search_path(std::string_view value, std::string_view here);

}  // namespace gantry::fence_mount
