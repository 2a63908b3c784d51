// SPDX-License-Identifier: Apache-2.0
// Old driver directories go when no container has them mounted any more.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gantry::driver_dir {

struct GarbageOptions {
  // A container that is just starting may have looked at `current` before it was switched.
  std::chrono::seconds youngest{60};
  std::string processes = "/proc";  // whose mountinfo to read; the engine's machine, not the root's
  // /proc/1/ns/pid of a whole machine: the number that every Linux gives to its first pid namespace
  // (PROC_PID_INIT_INO in include/linux/proc_ns.h).
  std::uint64_t initial_pid_namespace = 0xEFFFFFFC;
};

struct GarbageResult {
  std::vector<std::string> removed;  // "550.90.07-..."
  std::vector<std::string> in_use;   // kept: mounted somewhere
  std::vector<std::string> failed;   // a sentence for each that should have gone
};

// Never removes what `current` leads to, nor anything while it is unsure: when not all processes of
// the machine are seen, or some process's mounts cannot be read, nothing goes. One directory that
// cannot be removed does not keep the others; the next call finishes what was begun.
Result<GarbageResult> collect_garbage(const sys::Host& host, const GarbageOptions& options = {});

// The same for all of them: first `current` goes, so that no container can begin to use one. Those
// that are in use stay; another call takes them when they are not any more.
Result<GarbageResult> unpublish(const sys::Host& host, const GarbageOptions& options = {});

}  // namespace gantry::driver_dir
