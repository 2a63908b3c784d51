// SPDX-License-Identifier: Apache-2.0
// Removes old driver directories that no container has mounted.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gantry::driver_dir {

struct GarbageOptions {
  // A container that is starting may have read `current` before it was switched.
  std::chrono::seconds youngest{60};
  std::string processes =
      "/proc";  // whose mountinfo to read: of the engine's machine, not the root
  // The inode of /proc/1/ns/pid on a whole machine: every Linux gives this number to its first pid
  // namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h).
  std::uint64_t initial_pid_namespace = 0xEFFFFFFC;
};

struct GarbageResult {
  std::vector<std::string> removed;  // "550.90.07-..."
  std::vector<std::string> in_use;   // not removed because they are mounted
  std::vector<std::string> failed;   // one sentence for each that could not be removed
};

// Never removes the target of `current`. Removes nothing if not all processes of the machine are
// visible or the mounts of a process cannot be read. If one directory cannot be removed, the others
// still are; the next call continues a removal that was interrupted.
Result<GarbageResult> collect_garbage(const sys::Host& host, const GarbageOptions& options = {});

// The same for all directories: removes `current` first, so that no new container can use one.
// Directories in use stay; call it again later to remove them.
Result<GarbageResult> unpublish(const sys::Host& host, const GarbageOptions& options = {});

}  // namespace gantry::driver_dir
