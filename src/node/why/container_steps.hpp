// SPDX-License-Identifier: Apache-2.0
// The last steps: what a running container has. The container is examined from the host, through a
// descriptor of its root directory. Nothing in it is executed, and nothing in it is trusted.
#pragma once

#include "cluster/explain/explanation.hpp"
#include "container/rootfs/root.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::why {

// The data about a container's process that the steps need, so that tests can provide it.
struct ContainerView {
  std::vector<std::string> environment;  // NAME=value
  std::string mountinfo;
  std::vector<std::string> nodes;          // NVIDIA's nodes in its /dev: "nvidia0", "nvidiactl"
  std::string driver_version;              // of the kernel module; "": none
  std::optional<bool> program_names_cuda;  // its executable contains the name of libcuda
};

// Checks the device nodes, variables that hide them, the C library, the way of the loader to
// libcuda, CUDA in the image, and frameworks without GPU support.
std::vector<explain::Step> container_steps(const rootfs::Root& root, const ContainerView& inside);

}  // namespace gantry::why
