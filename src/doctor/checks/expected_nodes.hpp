// SPDX-License-Identifier: Apache-2.0
// The device nodes that the loaded driver needs. The numbers are read from the machine, never
// assumed. Checks compare existing nodes with this list; fixes create missing nodes from it.
#pragma once

#include "doctor/engine/facts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::doctor {

enum class NodeGroup : std::uint8_t { Gpu, Uvm, Modeset, Capability, Switch };

struct ExpectedNode {
  NodeGroup group = NodeGroup::Gpu;
  std::string path;
  sys::FileInfo node;  // type, numbers, mode and owner as the driver wants them
};

// Empty if the driver is not loaded.
std::vector<ExpectedNode> expected_nodes(const Facts& facts);

// The driver's parameter ModifyDeviceFiles: 0 means that something else manages the nodes.
bool may_modify_nodes(const Facts& facts);

// Returns true if owner and group can use a node with this mode. 01232 is the result of writing
// 666 where the driver expects a decimal number.
bool is_usable_mode(std::uint32_t mode);

}  // namespace gantry::doctor
