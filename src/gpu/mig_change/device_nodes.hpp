// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/kernel.hpp"
#include "gpu/mig/mig_gpu.hpp"

namespace gantry::mig_change {

// Makes the nodes below /dev/nvidia-caps of a GPU's instances where they are missing or have
// another number, as nvidia-modprobe does. Does nothing if the driver's parameter ModifyDeviceFiles
// is 0: then another tool makes them.
Status make_instance_nodes(const sys::Host& host, const mig::MigGpu& gpu, sys::Kernel& kernel);

}  // namespace gantry::mig_change
