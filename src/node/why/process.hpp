// SPDX-License-Identifier: Apache-2.0
// From a container's id to the data of its first process. Everything is opened once, below the
// process's directory in /proc, so a reused process id cannot lead to another process.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "container/rootfs/root.hpp"
#include "node/why/container_steps.hpp"

#include <string_view>

namespace gantry::why {

// The oldest process in the container's cgroup. NotFound: the container does not run on this node.
// Invalid: not an id, or the beginning of several ids.
Result<int> container_process(const sys::Host& machine, std::string_view container_id);

struct OpenContainer {
  rootfs::Root root;
  ContainerView inside;
  sys::UniqueFd network;  // its network namespace; invalid if it may not be opened
};

// Searches the machine's processes. If the machine is a tree without processes (a simulated
// machine, or /host without its /proc), searches the processes that this process sees.
Result<OpenContainer> open_container(const sys::Host& machine, std::string_view container_id);

}  // namespace gantry::why
