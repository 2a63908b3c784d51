// SPDX-License-Identifier: Apache-2.0
// Device attributes: what the card's generation decides comes from a table, the rest from the
// machine.
#pragma once

#include "gpu/abi/cuda.h"
#include "sim/libcuda/driver.hpp"

namespace gantry::sim::cuda {

// What all cards of a compute capability have in common.
struct Generation {
  uint32_t major, minor;
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int shared_per_multiprocessor, shared_optin, registers_per_multiprocessor;
  int double_ratio;        // single to double precision speed
  int copy_engines;        // of datacentre cards
  int persisting_eighths;  // of the L2 cache that may be set aside
};

const Generation& generation_of(const Device& device);

// False when the driver of this machine does not know the attribute.
bool attribute(const Device& device, CUdevice_attribute which, int& value);

}  // namespace gantry::sim::cuda
