// SPDX-License-Identifier: Apache-2.0
// A process and its children with the fence in front of the driver's libraries, by mounts that they
// alone see. Nothing of the machine is changed; with the last of them the mounts are gone.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::fence_mount {

// A directory at another place.
struct BindMount {
  std::string source, place;
};

// All paths as this process sees them.
struct FenceMounts {
  std::string share;  // the share's fence directory, for FENCE_DIRECTORY; "": no fence
  std::string fence_cuda, fence_nvml;   // our libraries
  std::string real_cuda, real_nvml;     // the driver's; "" where it has no such library
  std::vector<std::string> cover_cuda;  // files that the fence is mounted over
  std::vector<std::string> cover_nvml;
  std::vector<std::string> hidden_nodes;  // "/dev/nvidia3": cannot be opened in there
  std::vector<BindMount> bound;           // in there alone
  std::string machine;                    // the tree of a simulated machine; "" for a real one
};

// How a process gets mounts of its own.
enum class NamespaceKind : std::uint8_t {
  MountNamespace,         // as root
  UserAndMountNamespace,  // as anybody, where the kernel lets users make namespaces
};

// Whether this process could, and if not, why: tried in a child. Start it from a process with one
// thread.
Status can_mount_fence(NamespaceKind way);

// This process, from now on. After a failure it is to end: some of the mounts may be there.
Status enter_fence(const FenceMounts& fence_mounts, NamespaceKind way);

}  // namespace gantry::fence_mount
