// SPDX-License-Identifier: Apache-2.0
// The actions on a real machine.
#pragma once

#include "vm/vgpu/change.hpp"

namespace gantry::vgpu {

struct LiveOptions {
  std::chrono::milliseconds write_deadline{10'000};  // of one write to sysfs
};

// sysfs through a child with a deadline. Virtual functions are enabled by NVIDIA's sriov-manage
// where it is installed, else by sriov_numvfs; mixed sizes by nvidia-smi. `host` must outlive the
// actions.
Actions live_actions(const sys::Host& host, const LiveOptions& options = {});

// Random, version 4.
std::string random_uuid();

// The parts that a simulated machine shares with a real one: files, time and random numbers.
void add_common_actions(const sys::Host& host, Actions& actions);

}  // namespace gantry::vgpu
