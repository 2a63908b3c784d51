// SPDX-License-Identifier: Apache-2.0
// The last links: what a running container has. It is looked at from the host, through its root
// directory, and nothing of it is executed; everything in it may be a lie.
#pragma once

#include "base/result.hpp"
#include "sys/host.hpp"
#include "why/chain.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

// What is needed of a container's process, so that tests can write it down.
struct Inside {
  std::vector<std::string> environment;  // NAME=value
  std::string mountinfo;
  std::string driver_version;  // of the kernel module; "" = none
};

// The first process, by age, whose cgroup carries the container's id. NotFound: it does not run on
// this node.
Result<int> process_of(const sys::Host& machine, std::string_view container_id);

Result<Inside> read_inside(const sys::Host& machine, int pid);

// Nodes, the loader's way to libcuda, what stands before it, frameworks that know no GPU.
std::vector<Link> inside_links(const sys::Host& root, const Inside& inside);

}  // namespace gantry::why
