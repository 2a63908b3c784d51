// SPDX-License-Identifier: Apache-2.0
// Device attributes: those that depend on the generation of the card come from a table, the rest
// from the machine.
#pragma once

#include "gpu/abi/cuda.h"
#include "sim/libcuda/driver.hpp"

namespace gantry::sim::cuda {

// The values that all cards of a compute capability share.
struct Generation {
  uint32_t major, minor;
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int shared_per_multiprocessor, shared_optin, registers_per_multiprocessor;
  int double_ratio;        // single to double precision speed
  int copy_engines;        // of datacentre cards
  int persisting_eighths;  // part of the L2 cache that may be set aside, in eighths
};

const Generation& generation_of(const Device& device);

// Returns false if the driver of this machine does not know the attribute.
bool attribute(const Device& device, CUdevice_attribute which, int& value);

}  // namespace gantry::sim::cuda
