// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/libnvidia-ml/nvml_internal.hpp"

namespace gantry::sim::nvml {

// Changes a copy of the GPU's state; `announce` also creates a MIG configuration event.
using Mutation = nvmlReturn_t (*)(gantry_sim_gpu_state& value, bool& announce, void* argument);

// Locks out other writers, applies the change and publishes it to every process.
nvmlReturn_t change_gpu(uint32_t gpu, Mutation mutate, void* argument);

void clear_instances(gantry_sim_gpu_state& value);

// Counts a call that changes MIG, over all processes of the machine (gantry_sim_mig_function).
// False for a user who cannot write the driver's files.
bool count_mig_call(uint32_t function, uint64_t& of_function, uint64_t& of_all);
// Remembers the call with its result; the oldest one is forgotten.
void note_mig_call(gantry_sim_mig_call call);

// Clears the state that requires a reset, if no process uses the GPU.
nvmlReturn_t reset_gpu(const Target& target);

}  // namespace gantry::sim::nvml
