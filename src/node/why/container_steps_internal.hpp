// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/rootfs/mount_table.hpp"
#include "node/why/container_steps.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

// Directories of LD_LIBRARY_PATH, limited in number.
std::vector<std::string> library_path(const ContainerView& inside);

struct FoundLibrary {
  std::string path;     // as the loader finds it
  std::string real;     // with symlinks resolved
  std::string version;  // from the file name; "" if it has none
};

// The file that glibc's loader would load as libcuda.so.1, in its search order.
std::optional<FoundLibrary> find_libcuda(const rootfs::Root& root, const ContainerView& inside);

// Where the file at a path of the driver comes from.
enum class MountSource : std::uint8_t { Image, Driver, Volume };
MountSource mount_source(const std::vector<rootfs::MountEntry>& mounts, std::string_view path);

explain::Step library_step(const std::optional<FoundLibrary>& found, const ContainerView& inside,
                           const std::vector<rootfs::MountEntry>& mounts);
// Finds a volume that is mounted over the driver's files; nullopt if there is none.
std::optional<explain::Step> mounts_step(const std::optional<FoundLibrary>& found,
                                         const std::vector<rootfs::MountEntry>& mounts);

}  // namespace gantry::why
