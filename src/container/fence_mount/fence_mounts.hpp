// SPDX-License-Identifier: Apache-2.0
// Puts the fence in front of the driver's libraries for one process and its children, by mounts in
// their own mount namespace. The machine is not changed; the mounts end with the last process.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::fence_mount {

// A directory that is mounted at another path.
struct BindMount {
  std::string source, place;
};

// All paths as this process sees them.
struct FenceMounts {
  std::string share;  // the share's fence directory, for FENCE_DIRECTORY; "": no fence
  std::string fence_cuda, fence_nvml;   // our libraries
  std::string real_cuda, real_nvml;     // the driver's; "" if it has no such library
  std::vector<std::string> cover_cuda;  // files that the fence is mounted over
  std::vector<std::string> cover_nvml;
  std::vector<std::string> hidden_nodes;  // "/dev/nvidia3": cannot be opened in the namespace
  std::vector<BindMount> bound;           // mounted in the namespace only
  std::string machine;                    // the tree of a simulated machine; "" for a real one
};

// How a process gets its own mounts.
enum class NamespaceKind : std::uint8_t {
  MountNamespace,         // as root
  UserAndMountNamespace,  // as any user, if the kernel lets users create namespaces
};

// Tries in a child process whether enter_fence() would work; the error says why not. Call it from a
// process with one thread.
Status can_mount_fence(NamespaceKind way);

// Puts this process behind the fence. After an error the process must exit: some of the mounts may
// exist.
Status enter_fence(const FenceMounts& fence_mounts, NamespaceKind way);

}  // namespace gantry::fence_mount
