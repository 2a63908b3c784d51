// SPDX-License-Identifier: Apache-2.0
// The device nodes of the loaded driver. Numbers, mode and owner are read from the kernel, never
// assumed.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>
#include <vector>

namespace gantry::driver_setup {

struct RequiredNode {
  std::string path;
  sys::FileInfo node;
  bool operator==(const RequiredNode&) const = default;
};

// By path. Empty if the driver is not loaded, or if its parameter ModifyDeviceFiles is 0: then
// another tool makes the nodes. Nodes of MIG instances are left to nvidia-smi, which makes them
// with the instances.
std::vector<RequiredNode> wanted_nodes(const sys::Host& host);

// Of these, the ones that are missing or have other numbers.
std::vector<RequiredNode> nodes_to_make(const sys::Host& host);

// Every node /dev/nvidia* that exists, whether the driver is loaded or not.
std::vector<std::string> present_driver_nodes(const sys::Host& host);

// The same and the nodes of DRM and GPUDirect: a process that has one of them open keeps the
// modules.
std::vector<std::string> nodes_that_hold_driver(const sys::Host& host);

}  // namespace gantry::driver_setup
