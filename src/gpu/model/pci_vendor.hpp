// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gantry::model {

inline constexpr std::uint16_t kNvidiaVendor = 0x10de;  // NVIDIA's vendor id on the PCI bus

}  // namespace gantry::model
