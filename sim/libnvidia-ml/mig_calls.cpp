// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/running_machine.h"
#include "sim/libnvidia-ml/mig_calls_internal.hpp"
#include "sim/libnvidia-ml/state_change_internal.hpp"

namespace gantry::sim::nvml {
namespace {

constexpr uint32_t kRebootAction = 2;  // nvmlDeviceGpuRecoveryAction_t

nvmlReturn_t lose(gantry_sim_gpu_state& value, bool&, void*) {
  value.lost = 1;
  value.recovery_action = kRebootAction;
  return NVML_SUCCESS;
}

nvmlReturn_t destroy_all(gantry_sim_gpu_state& value, bool& announce, void*) {
  clear_instances(value);
  announce = true;
  return NVML_SUCCESS;
}

void do_action(uint32_t action, uint32_t gpu) {
  if (gpu >= machine().gpu_count) return;
  if (action == GANTRY_SIM_FAULT_LOSE) change_gpu(gpu, lose, nullptr);
  if (action == GANTRY_SIM_FAULT_DESTROY) change_gpu(gpu, destroy_all, nullptr);
}

}  // namespace

nvmlReturn_t begin_mig_call(const MigCall& call) {
  if (const auto result = check_session(call.branch); result != NVML_SUCCESS) return result;
  uint64_t of_function = 0;
  uint64_t of_all = 0;
  const bool counted = count_mig_call(call.function, of_function, of_all);
  uint32_t action = GANTRY_SIM_FAULT_ONLY;
  const int fault = run_faults(
      {call.name, counted ? &of_function : nullptr, counted ? &of_all : nullptr}, &action);
  do_action(action, call.gpu);
  return fault != 0 ? static_cast<nvmlReturn_t>(fault) : check_driver_loaded();
}

nvmlReturn_t end_mig_call(const MigCall& call, nvmlReturn_t result) {
  if (result == NVML_ERROR_UNINITIALIZED || gantry_sim_is_packaged() != 0) return result;
  gantry_sim_mig_call noted{};
  noted.function = call.function;
  noted.gpu = call.gpu;
  noted.gi_id = call.gi_id;
  noted.ci_id = call.ci_id;
  noted.value = call.value;
  noted.result = result;
  note_mig_call(noted);
  return result;
}

MigCall mig_call(uint32_t function, const char* name, uint32_t branch, nvmlDevice_t device) {
  return {function, name, branch, gpu_of(device), -1, -1, -1};
}

MigCall mig_call(uint32_t function, const char* name, uint32_t branch, nvmlGpuInstance_t instance) {
  InstanceTarget target{};
  const bool known = place_of(instance, target);
  return {function,
          name,
          branch,
          known ? target.gpu : GANTRY_SIM_MAX_GPUS,
          known ? static_cast<int32_t>(target.gi_id) : -1,
          -1,
          -1};
}

MigCall mig_call(uint32_t function, const char* name, uint32_t branch,
                 nvmlComputeInstance_t compute) {
  InstanceTarget target{};
  const bool known = place_of(compute, target);
  return {function,
          name,
          branch,
          known ? target.gpu : GANTRY_SIM_MAX_GPUS,
          known ? static_cast<int32_t>(target.gi_id) : -1,
          known ? static_cast<int32_t>(target.ci_id) : -1,
          -1};
}

}  // namespace gantry::sim::nvml
