// SPDX-License-Identifier: Apache-2.0
// The last links: what a running container has. It is looked at from the host, through a descriptor
// of its root directory, and nothing of it is executed; everything in it may be a lie.
#pragma once

#include "container/rootfs/root.hpp"
#include "node/why/explanation.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::why {

// What is needed of a container's process, so that tests can write it down.
struct ContainerView {
  std::vector<std::string> environment;  // NAME=value
  std::string mountinfo;
  std::vector<std::string> nodes;          // NVIDIA's in its /dev: "nvidia0", "nvidiactl"
  std::string driver_version;              // of the kernel module; "" = none
  std::optional<bool> program_names_cuda;  // its executable holds the name of libcuda
};

// Nodes, what hides them, the C library, the loader's way to libcuda and what stands before it,
// CUDA in the image, frameworks that know no GPU.
std::vector<Step> container_steps(const rootfs::Root& root, const ContainerView& inside);

}  // namespace gantry::why
