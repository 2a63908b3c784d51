// SPDX-License-Identifier: Apache-2.0
// The calls that change MIG: counted and remembered for the whole machine, and subject to faults
// that name one of them by its number.
#pragma once

#include "sim/libnvidia-ml/mig_internal.hpp"

namespace gantry::sim::nvml {

struct MigCall {
  uint32_t function;  // gantry_sim_mig_function
  const char* name;
  uint32_t branch;  // the first driver branch that has it
  uint32_t gpu;     // GANTRY_SIM_MAX_GPUS for a handle of no GPU
  int32_t gi_id, ci_id;
  int32_t value;  // the wanted mode, or the profile of a new instance; -1: none
};

// The first half of an entry point: checks the session, counts the call, and suffers its faults.
nvmlReturn_t begin_mig_call(const MigCall& call);
// The second half: remembers how it ended, and returns `result`.
nvmlReturn_t end_mig_call(const MigCall& call, nvmlReturn_t result);

// The GPU and the ids that a handle stands for, whether or not they still exist.
MigCall mig_call(uint32_t function, const char* name, uint32_t branch, nvmlDevice_t device);
MigCall mig_call(uint32_t function, const char* name, uint32_t branch, nvmlGpuInstance_t instance);
MigCall mig_call(uint32_t function, const char* name, uint32_t branch,
                 nvmlComputeInstance_t compute);

}  // namespace gantry::sim::nvml

#define GANTRY_BEGIN_MIG(number, function, handle)                                                \
  gantry::sim::nvml::MigCall call =                                                               \
      gantry::sim::nvml::mig_call(number, #function, gantry::sim::nvml::since::function, handle); \
  if (const nvmlReturn_t begun = gantry::sim::nvml::begin_mig_call(call); begun != NVML_SUCCESS)  \
  return gantry::sim::nvml::end_mig_call(call, begun)
