// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi -pm, -c, -mig: on every GPU asked for, stopping at the first refusal; and -r.
#include "sim/nvidia-smi/modify.hpp"

#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/readings.hpp"

#include <strings.h>

namespace smi {
namespace {

// 0/DISABLED, 1/ENABLED
bool parse_switch(const char* text, unsigned* out) {
  if (strcasecmp(text, "ENABLED") == 0) *out = 1;
  if (strcasecmp(text, "DISABLED") == 0) *out = 0;
  if (strcasecmp(text, "ENABLED") == 0 || strcasecmp(text, "DISABLED") == 0) return true;
  return parse_number(text, out) && *out <= 1;
}

constexpr const char* kComputeModes[] = {"DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                         "EXCLUSIVE_PROCESS"};

}  // namespace

// Resets all GPUs or the named ones; if one refuses, the others are still reset.
int reset_gpus(Session& session) {
  nvmlReturn_t refused = NVML_SUCCESS;
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    const nvmlReturn_t error = call(session.nvml.reset, gpu.handle);
    if (error == NVML_SUCCESS) {
      printf("GPU %s was successfully reset.\n", gpu.bus_id);
      continue;
    }
    if (refused == NVML_SUCCESS) puts("The following GPUs could not be reset:");
    printf("  GPU %s: %s\n", gpu.bus_id,
           error == NVML_ERROR_IN_USE ? "In use by another client" : words(session, error));
    refused = error;
  }
  return refused == NVML_SUCCESS ? finish(session) : give_up(refused);
}

int set_persistence(Session& session, const char* value) {
  unsigned wanted = 0;
  if (!parse_switch(value, &wanted)) return refuse_value("persistence mode", value);
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    nvmlEnableState_t now = NVML_FEATURE_DISABLED;
    const auto mode = wanted != 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    if (call(session.nvml.nvmlDeviceGetPersistenceMode, gpu.handle, &now) == NVML_SUCCESS &&
        now == mode) {
      printf("Persistence mode is already %s for GPU %s.\n", wanted != 0 ? "Enabled" : "Disabled",
             gpu.bus_id);
      continue;
    }
    const nvmlReturn_t error = call(session.nvml.nvmlDeviceSetPersistenceMode, gpu.handle, mode);
    if (error != NVML_SUCCESS) {
      printf("Unable to set persistence mode for GPU %s: %s\n", gpu.bus_id, words(session, error));
      return give_up(error);
    }
    printf("%s persistence mode for GPU %s.\n", wanted != 0 ? "Enabled" : "Disabled", gpu.bus_id);
  }
  return finish(session);
}

int set_compute_mode(Session& session, const char* value) {
  unsigned wanted = 4;
  for (unsigned i = 0; i < 4; ++i) {
    if (strcasecmp(kComputeModes[i], value) == 0) wanted = i;
  }
  if (wanted == 4 && (!parse_number(value, &wanted) || wanted > 3))
    return refuse_value("compute mode", value);
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    nvmlComputeMode_t now = NVML_COMPUTEMODE_DEFAULT;
    const auto mode = static_cast<nvmlComputeMode_t>(wanted);
    if (call(session.nvml.nvmlDeviceGetComputeMode, gpu.handle, &now) == NVML_SUCCESS &&
        now == mode) {
      printf("Compute mode is already set to %s for GPU %s.\n", kComputeModes[wanted], gpu.bus_id);
      continue;
    }
    const nvmlReturn_t error = call(session.nvml.nvmlDeviceSetComputeMode, gpu.handle, mode);
    if (error != NVML_SUCCESS) {
      printf("Unable to set the compute mode for GPU %s: %s\n", gpu.bus_id, words(session, error));
      return give_up(error);
    }
    printf("Set compute mode to %s for GPU %s.\n", kComputeModes[wanted], gpu.bus_id);
  }
  return finish(session);
}

int set_mig_mode(Session& session, const char* value) {
  unsigned wanted = 0;
  if (!parse_switch(value, &wanted)) return refuse_value("MIG Mode", value);
  const char* verb = wanted != 0 ? "enable" : "disable";
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    nvmlReturn_t activation = NVML_SUCCESS;
    const nvmlReturn_t error =
        call(session.nvml.nvmlDeviceSetMigMode, gpu.handle, wanted, &activation);
    if (error != NVML_SUCCESS) {
      printf("Unable to %s MIG Mode for GPU %s: %s\n", verb, gpu.bus_id, words(session, error));
      if (!is_warning(error)) return give_up(error);
      puts("Treating as warning and moving on.");
      continue;
    }
    if (activation != NVML_SUCCESS) {
      printf("Warning: MIG mode is in pending %s state for GPU %s:%s\n", verb, gpu.bus_id,
             words(session, activation));
      continue;
    }
    printf("%s MIG Mode for GPU %s\n", wanted != 0 ? "Enabled" : "Disabled", gpu.bus_id);
  }
  return finish(session);
}

}  // namespace smi
