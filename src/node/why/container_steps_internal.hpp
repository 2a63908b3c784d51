// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/rootfs/mount_table.hpp"
#include "node/why/container_steps.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

// Of its environment; nullopt where it is not set at all.
std::optional<std::string> variable(const ContainerView& inside, std::string_view name);
std::vector<std::string> library_path(const ContainerView& inside);  // LD_LIBRARY_PATH, bounded

struct FoundLibrary {
  std::string path;     // as the loader names it
  std::string real;     // without symlinks
  std::string version;  // of the file's name; "" when it has none
};

// What the loader of glibc would take for libcuda.so.1, in its order.
std::optional<FoundLibrary> find_libcuda(const rootfs::Root& root, const ContainerView& inside);

// Whose a mount is that stands where the driver's files belong.
enum class MountSource : std::uint8_t { Image, Driver, Volume };
MountSource mount_source(const std::vector<rootfs::MountEntry>& mounts, std::string_view path);

Step library_step(const std::optional<FoundLibrary>& found, const ContainerView& inside,
                  const std::vector<rootfs::MountEntry>& mounts);
// A volume where the driver's files belong; nothing when there is none.
std::optional<Step> mounts_step(const std::optional<FoundLibrary>& found,
                                const std::vector<rootfs::MountEntry>& mounts);

// Directories of Python packages, by the usual places and the environment.
std::vector<std::string> python_directories(const rootfs::Root& root, const ContainerView& inside);
std::optional<Step> framework_step(const rootfs::Root& root,
                                   const std::vector<std::string>& places);
Step cuda_step(const rootfs::Root& root, const ContainerView& inside,
               const std::vector<std::string>& places);

}  // namespace gantry::why
