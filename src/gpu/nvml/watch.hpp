// SPDX-License-Identifier: Apache-2.0
// `gantry-nvml watch`: keeps NVML loaded, sends the whole view at the start and whenever GPUs or
// MIG instances change, readings when asked, and events as they come.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/nvml/nvml.hpp"

#include <chrono>

namespace gantry::nvml {

// Both return the exit status; end the process with _exit.

// Runs until the parent closes its socket, or until NVML failed and the parent was told.
int watch(const sys::Host& host, Nvml loaded, std::chrono::milliseconds event_wait);

// Sends a view that says why NVML was not loaded.
int send_not_loaded(const Error& why);

}  // namespace gantry::nvml
