// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/rootfs/mount_table.hpp"
#include "node/why/inside.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

// Of its environment; nullopt where it is not set at all.
std::optional<std::string> variable(const Inside& inside, std::string_view name);
std::vector<std::string> library_path(const Inside& inside);  // LD_LIBRARY_PATH, bounded

struct Library {
  std::string path;     // as the loader names it
  std::string real;     // without symlinks
  std::string version;  // of the file's name; "" when it has none
};

// What the loader of glibc would take for libcuda.so.1, in its order.
std::optional<Library> find_libcuda(const rootfs::Root& root, const Inside& inside);

// Whose a mount is that stands where the driver's files belong.
enum class Giver : std::uint8_t { Image, Driver, Volume };
Giver giver_of(const std::vector<rootfs::Mount>& mounts, std::string_view path);

Link library_link(const std::optional<Library>& found, const Inside& inside,
                  const std::vector<rootfs::Mount>& mounts);
// A volume where the driver's files belong; nothing when there is none.
std::optional<Link> mounts_link(const std::optional<Library>& found,
                                const std::vector<rootfs::Mount>& mounts);

// Directories of Python packages, by the usual places and the environment.
std::vector<std::string> python_places(const rootfs::Root& root, const Inside& inside);
std::optional<Link> framework_link(const rootfs::Root& root,
                                   const std::vector<std::string>& places);
Link cuda_link(const rootfs::Root& root, const Inside& inside,
               const std::vector<std::string>& places);

}  // namespace gantry::why
