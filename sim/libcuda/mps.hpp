// SPDX-License-Identifier: Apache-2.0
// This process as a client of the MPS daemon, or as its server. The daemon's socket says which
// limits hold; a server that goes away closes it.
#pragma once

#include "sim/libcuda/driver.hpp"

namespace gantry::sim::cuda {

// For cuInit, after the devices were found: becomes a client if CUDA_MPS_PIPE_DIRECTORY has a
// daemon, and cuts the devices to the client's limits. Without a daemon the process runs alone, as
// with the vendor's driver.
CUresult connect_to_mps_daemon();

inline bool is_mps_client() {
  return driver.mps.daemon >= 0;
}

// The error if the daemon ended this client, or if its server is gone.
CUresult mps_failure();

// Tells the daemon that this client uses the GPU.
void tell_mps_device(const Device& device);

// In a forked child.
void forget_mps();

}  // namespace gantry::sim::cuda
