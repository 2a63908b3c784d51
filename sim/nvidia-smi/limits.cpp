// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi -pl, -lgc, -rgc, -lmc, -rmc: power limit and locked clocks.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/modify.hpp"

#include <stdlib.h>

namespace smi {
namespace {

double watts(unsigned milliwatts) {
  return static_cast<double>(milliwatts) / 1000.0;
}

bool parse_watts(const char* text, unsigned* milliwatts) {
  char* end = nullptr;
  const double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0) || value > 100000) return false;
  *milliwatts = static_cast<unsigned>(value * 1000.0 + 0.5);
  return true;
}

void warn_without_persistence(const Gpu& gpu) {
  nvmlEnableState_t mode = NVML_FEATURE_ENABLED;
  call(gpu.session->nvml.nvmlDeviceGetPersistenceMode, gpu.handle, &mode);
  if (mode == NVML_FEATURE_ENABLED) return;
  printf(
      "Warning: persistence mode is disabled on device %s. See the Known Issues section of the "
      "nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get more "
      "information on how to enable persistence mode.\n",
      gpu.bus_id);
}

nvmlReturn_t set_limit(const Gpu& gpu, unsigned milliwatts) {
  const Nvml& nvml = gpu.session->nvml;
  unsigned before = 0;
  unsigned low = 0;
  unsigned high = 0;
  if (call(nvml.nvmlDeviceGetPowerManagementLimitConstraints, gpu.handle, &low, &high) ==
          NVML_SUCCESS &&
      (milliwatts < low || milliwatts > high)) {
    printf(
        "Provided power limit %.2f W is not a valid power limit which should be between %.2f W and "
        "%.2f W for GPU %s\n",
        watts(milliwatts), watts(low), watts(high), gpu.bus_id);
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  call(nvml.nvmlDeviceGetPowerManagementLimit, gpu.handle, &before);
  const nvmlReturn_t error = call(nvml.nvmlDeviceSetPowerManagementLimit, gpu.handle, milliwatts);
  if (is_warning(error)) {
    printf("Changing power management limit is not supported for GPU: %s.\n", gpu.bus_id);
  } else if (error != NVML_SUCCESS) {
    printf("Failed to set power management limit for GPU %s: %s\n", gpu.bus_id,
           words(*gpu.session, error));
  } else {
    printf("Power limit for GPU %s was set to %.2f W from %.2f W.\n", gpu.bus_id, watts(milliwatts),
           watts(before));
    warn_without_persistence(gpu);
  }
  return error;
}

// "1410" or "300,1410"
bool parse_range(const char* text, unsigned* low, unsigned* high) {
  Text first;
  if (!next_item(&text, first) || !parse_number(first.c_str(), low)) return false;
  *high = *low;
  Text second;
  if (next_item(&text, second) && !parse_number(second.c_str(), high)) return false;
  return *text == '\0' && *low <= *high && *high != 0;
}

struct ClockWords {
  const char* title;   // "GPU clocks"
  const char* field;   // "gpuClk"
  const char* action;  // "locked GPU clocks"
};

constexpr ClockWords kGpuClocks = {"GPU clocks", "gpuClk", "locked GPU clocks"};
constexpr ClockWords kMemoryClocks = {"Memory clocks", "memClk", "locked memory clocks"};

const ClockWords& words_for(Clocks which) {
  return which == Clocks::Gpu ? kGpuClocks : kMemoryClocks;
}

void explain_clocks(const Gpu& gpu, nvmlReturn_t error, const char* verb, const ClockWords& text) {
  if (is_warning(error)) {
    printf("%s %s is not supported for GPU %s.\n", verb, text.action, gpu.bus_id);
  } else if (error == NVML_ERROR_NO_PERMISSION) {
    printf("The current user does not have permission to change clocks for GPU %s.\n", gpu.bus_id);
  } else {
    printf("Failed to change clocks for GPU %s: %s\n", gpu.bus_id, words(*gpu.session, error));
  }
}

}  // namespace

int set_power_limit(Session& session, const char* value) {
  unsigned milliwatts = 0;
  if (!parse_watts(value, &milliwatts)) return refuse_value("power limit", value);
  for (unsigned i = 0; i < session.count; ++i) {
    const nvmlReturn_t error = set_limit(session.gpus[i], milliwatts);
    if (is_warning(error)) {
      puts("Treating as warning and moving on.");
    } else if (error != NVML_SUCCESS) {
      return give_up(error);
    }
  }
  return finish(session);
}

int lock_clocks(Session& session, Clocks which, const char* value) {
  unsigned low = 0;
  unsigned high = 0;
  if (!parse_range(value, &low, &high)) return refuse_value("clock range", value);
  const ClockWords& text = words_for(which);
  const Nvml& nvml = session.nvml;
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    const nvmlReturn_t error =
        which == Clocks::Gpu ? call(nvml.nvmlDeviceSetGpuLockedClocks, gpu.handle, low, high)
                             : call(nvml.nvmlDeviceSetMemoryLockedClocks, gpu.handle, low, high);
    if (error == NVML_SUCCESS) {
      printf("%s set to \"(%sMin %u, %sMax %u)\" for GPU %s\n", text.title, text.field, low,
             text.field, high, gpu.bus_id);
      warn_without_persistence(gpu);
      continue;
    }
    explain_clocks(gpu, error, "Setting", text);
    if (!is_warning(error)) return give_up(error);
    puts("Treating as warning and moving on.");
  }
  return finish(session);
}

int unlock_clocks(Session& session, Clocks which) {
  const Nvml& nvml = session.nvml;
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    const nvmlReturn_t error = which == Clocks::Gpu
                                   ? call(nvml.nvmlDeviceResetGpuLockedClocks, gpu.handle)
                                   : call(nvml.nvmlDeviceResetMemoryLockedClocks, gpu.handle);
    if (error == NVML_SUCCESS) continue;
    explain_clocks(gpu, error, "Resetting", words_for(which));
    if (!is_warning(error)) return give_up(error);
    puts("Treating as warning and moving on.");
  }
  return finish(session);
}

}  // namespace smi
