// SPDX-License-Identifier: Apache-2.0
// The mounts that this process sees, and whose they are: a container's own, or the host's.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::rootfs {

// A line of /proc/PID/mountinfo.
struct MountEntry {
  std::uint64_t id = 0;
  std::string device;  // "0:35": one per file system, however often it is mounted
  std::string place;
  std::string type;
  bool shared = false;
  std::uint64_t parent = 0;  // the mount that it is on
  std::string root;          // what of its file system is mounted: "/", "/var/lib/data"
  bool operator==(const MountEntry&) const = default;
};

// Lines that are none are left out.
std::vector<MountEntry> parse_mountinfo(std::string_view mountinfo);

// The mounts of this namespace whose peers, perhaps on the host, would show what is mounted on
// them. For callers that promise to leave nothing mounted there.
Result<std::vector<std::uint64_t>> shared_mounts();

// Where an open file or directory is in this namespace, whatever name it was opened by.
Result<std::string> path_of_descriptor(int fd);

// Whether a mount is memory that lives and dies with the container, such as the /dev and /run that
// its runtime makes: a tmpfs that is mounted nowhere but below `root`. A tmpfs of the host that is
// bound into the container (its /run, an emptyDir of memory) has its other place as well.
bool is_container_tmpfs(const std::vector<MountEntry>& mounts, std::uint64_t id,
                        std::string_view root);

// The same, asked of this namespace for the directory that `root` is.
Result<bool> is_container_tmpfs(std::uint64_t id, int root);

}  // namespace gantry::rootfs
