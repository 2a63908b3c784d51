// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gantry::pci {

// The configuration space of a vGPU: one vendor-specific capability behind a power management one.
inline std::string vgpu_config_space() {
  std::string bytes(256, '\0');
  bytes[6] = 0x10;
  bytes[0x34] = 0x60;
  bytes[0x60] = 0x01;
  bytes[0x61] = 0x68;
  bytes[0x68] = 0x09;
  bytes[0x69] = 0;
  bytes[0x6a] = 5 + 4 + 22;
  bytes.replace(0x6b, 2, "VF");
  bytes[0x6d] = 1;  // a record that is not ours
  bytes[0x6e] = 4;
  bytes[0x71] = 0;
  bytes[0x72] = 22;
  bytes.replace(0x73, 9, "550.54.16");
  bytes.replace(0x7d, 7, "r550_40");
  return bytes;
}

}  // namespace gantry::pci
