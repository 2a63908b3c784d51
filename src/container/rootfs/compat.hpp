// SPDX-License-Identifier: Apache-2.0
// The image's own libcuda for forward compatibility: it is read, never executed, never mounted.
#pragma once

#include "container/rootfs/root.hpp"
#include "gpu/loader/forward_compat.hpp"
#include "gpu/model/container_edits.hpp"

#include <string>
#include <vector>

namespace gantry::rootfs {

inline constexpr std::string_view kCompatDirectory = "/usr/local/cuda/compat";

struct CompatChoice {
  bool use = false;
  std::string why;
  std::string directory;                      // in the container
  std::vector<model::LibraryEdit> libraries;  // that the loader finds there, if it is used
  bool operator==(const CompatChoice&) const = default;
};

// Never fails: if the directory is missing, a library cannot be read or its ELF note is malformed,
// the driver's own libraries are used, and `why` says so.
CompatChoice choose_compat(const Root& root, const loader::HostVersions& host,
                           std::string_view directory = kCompatDirectory);

// The libraries of a directory as ldconfig would list them: by SONAME, and by the plain ".so" link
// if there is one. Follows symlinks inside the root. Skips files that are not libraries for this
// machine.
Result<std::vector<model::LibraryEdit>> list_libraries(const Root& root,
                                                       std::string_view directory);

}  // namespace gantry::rootfs
