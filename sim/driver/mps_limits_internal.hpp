// SPDX-License-Identifier: Apache-2.0
// The limits of MPS as commands and variables write them.
#pragma once

#include "sim/driver/image.h"

#include <stdint.h>

namespace gantry::sim {

// "30" or "12.5"; false unless it is more than 0 and at most 100.
bool parse_percentage(const char* text, double& percentage);

// "8G", "512M", "1024K" or a number of bytes; false if it is not one of these, or 0.
bool parse_memory_limit(const char* text, uint64_t& bytes);

// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=1G,1=512M". An entry that is not understood is left out.
void parse_memory_limits(const char* text, uint64_t (&bytes)[GANTRY_SIM_MAX_GPUS]);

// Multiprocessors come in pairs, and a client has at least one pair.
uint32_t multiprocessors_of(uint32_t all, double percentage);

}  // namespace gantry::sim
