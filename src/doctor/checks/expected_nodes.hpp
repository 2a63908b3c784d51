// SPDX-License-Identifier: Apache-2.0
// The device nodes that the loaded driver calls for, with numbers read from the machine, never
// assumed. What is there is compared with this; what is missing is made from it.
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

// Empty when the driver is not loaded.
std::vector<ExpectedNode> expected_nodes(const Facts& facts);

// The driver's parameter ModifyDeviceFiles: 0 means that somebody else cares for the nodes.
bool may_modify_nodes(const Facts& facts);

// Whether owner and group could use a node with this mode at all. 01232 is what comes of writing
// 666 where the driver wants a decimal number.
bool is_usable_mode(std::uint32_t mode);

}  // namespace gantry::doctor
