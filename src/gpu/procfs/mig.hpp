// SPDX-License-Identifier: Apache-2.0
// The MIG instances that the driver shows in /proc/driver/nvidia/capabilities: a directory
// gpuMINOR/mig/giID for each GPU instance, with a directory ciID for each compute instance. It does
// not show their UUIDs; only NVML has them.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::procfs {

// The ids of the GPU instances of the GPU with this minor number, ascending. Empty if it has none,
// or if the driver does not show capabilities.
std::vector<std::uint32_t> gpu_instances(const sys::Host& host, std::uint32_t minor);

bool has_mig_instances(const sys::Host& host, std::uint32_t minor);

// The minors of all GPUs that have MIG instances, ascending.
std::vector<std::uint32_t> gpus_with_mig_instances(const sys::Host& host);

// "gpu0/gi1", "gpu0/gi1/ci0": all GPU and compute instances. Changes if the MIG layout changes.
std::vector<std::string> list_mig_instances(const sys::Host& host);

// The minors below /dev/nvidia-caps that GPU and compute instances of the GPU with this minor
// number have or can have.
std::vector<std::uint32_t> mig_capability_minors(const sys::Host& host, std::uint32_t minor);

}  // namespace gantry::procfs
