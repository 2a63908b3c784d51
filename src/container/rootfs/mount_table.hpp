// SPDX-License-Identifier: Apache-2.0
// The mounts that this process sees, and whether they belong to a container or to the host.
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
  std::string device;  // "0:35": one for each file system, even if it is mounted several times
  std::string place;
  std::string type;
  bool shared = false;
  std::uint64_t parent = 0;  // the mount that contains it
  std::string root;          // the mounted part of the file system: "/", "/var/lib/data"
  bool operator==(const MountEntry&) const = default;
};

// Skips malformed lines.
std::vector<MountEntry> parse_mountinfo(std::string_view mountinfo);

// The mounts of this namespace that propagate new mounts to their peers, perhaps to the host. For
// callers that must not leave mounts there.
Result<std::vector<std::uint64_t>> shared_mounts();

// The path of an open file or directory in this namespace, even if it was opened by another name.
Result<std::string> path_of_descriptor(int fd);

// Returns true if a mount is memory that exists only as long as the container, such as the /dev and
// /run that its runtime creates: a tmpfs that is mounted only below `root`. A tmpfs of the host
// that is bound into the container (its /run, an emptyDir in memory) is also mounted elsewhere.
bool is_container_tmpfs(const std::vector<MountEntry>& mounts, std::uint64_t id,
                        std::string_view root);

// The same for this namespace; `root` is a descriptor of the root directory.
Result<bool> is_container_tmpfs(std::uint64_t id, int root);

}  // namespace gantry::rootfs
