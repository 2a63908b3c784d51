// SPDX-License-Identifier: Apache-2.0
// From a container's id to what its first process has. Everything is opened below the process's own
// directory in /proc, once: a number that is given to another process meanwhile leads nowhere.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/rootfs/root.hpp"
#include "node/why/inside.hpp"

#include <string_view>

namespace gantry::why {

// The oldest process whose cgroup is the container's. NotFound: it does not run on this node.
// Invalid: no id, or one that several containers begin with.
Result<int> process_of(const sys::Host& machine, std::string_view container_id);

struct Container {
  rootfs::Root root;
  Inside inside;
};

// Looked for among the machine's processes, and where the machine is a tree without any (a
// simulated one, a /host without its /proc) among those that this process sees.
Result<Container> open_container(const sys::Host& machine, std::string_view container_id);

}  // namespace gantry::why
