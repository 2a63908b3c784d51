// SPDX-License-Identifier: Apache-2.0
// From a container's id to what its first process has. Everything is opened below the process's own
// directory in /proc, once: a number that is given to another process meanwhile leads nowhere.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/rootfs/root.hpp"
#include "node/why/container_steps.hpp"

#include <string_view>

namespace gantry::why {

// The oldest process whose cgroup is the container's. NotFound: it does not run on this node.
// Invalid: no id, or one that several containers begin with.
Result<int> container_process(const sys::Host& machine, std::string_view container_id);

struct OpenContainer {
  rootfs::Root root;
  ContainerView inside;
};

// Looked for among the machine's processes, and where the machine is a tree without any (a
// simulated one, a /host without its /proc) among those that this process sees.
Result<OpenContainer> open_container(const sys::Host& machine, std::string_view container_id);

}  // namespace gantry::why
