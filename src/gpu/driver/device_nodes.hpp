// SPDX-License-Identifier: Apache-2.0
// Finds the driver's device nodes, with their numbers and their purpose, and reports what is wrong
// with them.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/procfs/device_numbers.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::driver {

enum class DeviceNodeFault : std::uint8_t {
  Missing,       // the driver has the device, but /dev has no node
  WrongNumbers,  // the node's numbers are not those that the kernel assigned
  NotADevice,    // a file that is not a device has the node's name
  Unregistered   // a node without a device: no driver has registered it
};

struct DeviceNodeProblem {
  std::string path;
  DeviceNodeFault fault = DeviceNodeFault::Missing;
  std::string text;  // what, why, and the command that helps
  bool operator==(const DeviceNodeProblem&) const = default;
};

// A node of nvidia-drm, or udev's link to it, and its GPU.
struct DrmNode {
  std::string gpu;  // "0000:3b:00.0", as in /proc/driver/nvidia/gpus
  std::string path;
  bool operator==(const DrmNode&) const = default;
};

struct DeviceNodes {
  std::vector<model::DeviceNode> nodes;  // control first, then GPUs, then the rest; wrong ones too
  std::vector<DrmNode> drm;              // the nodes below /dev/dri, each followed by its link
  std::vector<DeviceNodeProblem> problems;
  std::vector<std::string> notes;
};

// `gpu_minors`: minors of the driver's GPUs, to report missing nodes.
DeviceNodes find_device_nodes(const sys::Host& host, std::span<const std::uint32_t> gpu_minors);

// The node of a capability: "/dev/nvidia-caps/nvidia-cap12".
std::string capability_node(std::uint32_t minor);

// Empty if the driver has no MIG support.
Result<procfs::MigMinors> read_mig_minors(const sys::Host& host);

}  // namespace gantry::driver
