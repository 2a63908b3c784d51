// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <string.h>

using namespace gantry::sim::nvml;

namespace {

nvmlReturn_t number(int32_t value, unsigned int* out) {
  GANTRY_NEED(out);
  if (value == GANTRY_SIM_UNSET) return NVML_ERROR_NOT_SUPPORTED;
  *out = static_cast<unsigned int>(value);
  return NVML_SUCCESS;
}

nvmlReturn_t pstate_of(nvmlDevice_t device, nvmlPstates_t* out) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  *out = static_cast<nvmlPstates_t>(gpu_now(target.gpu).pstate);
  return NVML_SUCCESS;
}

nvmlReturn_t fan_speed(const Target& target, unsigned int fan, unsigned int* percent) {
  if (target.card->fan_percent == GANTRY_SIM_UNSET || fan > 0) return NVML_ERROR_INVALID_ARGUMENT;
  return number(target.card->fan_percent, percent);
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
                                                    nvmlTemperatureSensors_t sensor,
                                                    unsigned int* celsius) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTemperature, device);
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return number(gpu_now(target.gpu).temperature, celsius);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device,
                                                     nvmlTemperature_t* temperature) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTemperatureV, device);
  GANTRY_NEED(temperature);
  if (temperature->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (temperature->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  const auto now = gpu_now(target.gpu);
  if (now.temperature == GANTRY_SIM_UNSET) return NVML_ERROR_NOT_SUPPORTED;
  temperature->temperature = now.temperature;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                                             nvmlTemperatureThresholds_t type,
                                                             unsigned int* celsius) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTemperatureThreshold, device);
  switch (type) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
      return number(target.card->temperature_shutdown, celsius);
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
      return number(target.card->temperature_slowdown, celsius);
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: return number(target.card->temperature_max, celsius);
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
      if (gpu_now(target.gpu).memory_temperature == GANTRY_SIM_UNSET)
        return NVML_ERROR_NOT_SUPPORTED;
      return number(target.card->temperature_shutdown, celsius);
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN:
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR:
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX:
    case NVML_TEMPERATURE_THRESHOLD_GPS_CURR: return NVML_ERROR_NOT_SUPPORTED;
    default: return NVML_ERROR_INVALID_ARGUMENT;
  }
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                                          nvmlMarginTemperature_t* margin) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMarginTemperature, device);
  GANTRY_NEED(margin);
  if (margin->version != nvmlMarginTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const auto now = gpu_now(target.gpu);
  if (target.card->nvml_architecture < NVML_DEVICE_ARCH_ADA ||
      target.card->temperature_max == GANTRY_SIM_UNSET || now.temperature == GANTRY_SIM_UNSET) {
    return NVML_ERROR_NOT_SUPPORTED;
  }
  margin->marginTemperature = target.card->temperature_max - now.temperature;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, unsigned int sensor,
                                                        nvmlGpuThermalSettings_t* settings) {
  GANTRY_ENTER_GPU(nvmlDeviceGetThermalSettings, device);
  GANTRY_NEED(settings);
  const auto now = gpu_now(target.gpu);
  if (now.temperature == GANTRY_SIM_UNSET) return NVML_ERROR_NOT_SUPPORTED;
  if (sensor != 0 && sensor != 15) return NVML_ERROR_INVALID_ARGUMENT;  // 15: every sensor
  *settings = {};
  settings->count = 1;
  settings->sensor[0] = {NVML_THERMAL_CONTROLLER_GPU_INTERNAL, 0, 127, now.temperature,
                         NVML_THERMAL_TARGET_GPU};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent) {
  GANTRY_ENTER_GPU(nvmlDeviceGetFanSpeed, device);
  return number(target.card->fan_percent, percent);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                                    unsigned int* percent) {
  GANTRY_ENTER_GPU(nvmlDeviceGetFanSpeed_v2, device);
  return fan_speed(target, fan, percent);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int fan,
                                                       unsigned int* percent) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTargetFanSpeed, device);
  return fan_speed(target, fan, percent);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetFanSpeedRPM, device);
  GANTRY_NEED(info);
  if (info->version != nvmlFanSpeedInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (const auto result = fan_speed(target, info->fan, &info->speed); result != NVML_SUCCESS) {
    return result;
  }
  info->speed *= 30;  // 3000 revolutions per minute at full speed
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int* fans) {
  GANTRY_ENTER_GPU(nvmlDeviceGetNumFans, device);
  GANTRY_NEED(fans);
  *fans = target.card->fan_percent == GANTRY_SIM_UNSET ? 0 : 1;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device,
                                                            nvmlEnableState_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPowerManagementMode, device);
  GANTRY_NEED(mode);
  if (target.card->power_limit_mw == GANTRY_SIM_UNSET) return NVML_ERROR_NOT_SUPPORTED;
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device,
                                                             unsigned int* milliwatts) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPowerManagementLimit, device);
  return number(gpu_now(target.gpu).power_limit_mw, milliwatts);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device,
                                                           unsigned int* milliwatts) {
  GANTRY_ENTER_GPU(nvmlDeviceGetEnforcedPowerLimit, device);
  return number(gpu_now(target.gpu).power_limit_mw, milliwatts);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device,
                                                                    unsigned int* milliwatts) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPowerManagementDefaultLimit, device);
  return number(target.card->power_limit_mw, milliwatts);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device,
                                                                        unsigned int* low,
                                                                        unsigned int* high) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPowerManagementLimitConstraints, device);
  GANTRY_NEED(high);
  if (const auto result = number(target.card->power_min_mw, low); result != NVML_SUCCESS) {
    return result;
  }
  return number(target.card->power_max_mw, high);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPowerUsage, device);
  return number(gpu_now(target.gpu).power_mw, milliwatts);
}

// Since the kernel started, as if the card had always drawn its current power.
GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                               unsigned long long* millijoules) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTotalEnergyConsumption, device);
  GANTRY_NEED(millijoules);
  return energy_of(target, *millijoules) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device,
                                                    nvmlPowerSource_t* source) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPowerSource, device);
  GANTRY_NEED(source);
  *source = NVML_POWER_SOURCE_AC;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* state) {
  GANTRY_ENTER(nvmlDeviceGetPowerState);
  return pstate_of(device, state);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device,
                                                         nvmlPstates_t* state) {
  GANTRY_ENTER(nvmlDeviceGetPerformanceState);
  return pstate_of(device, state);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device,
                                                                   nvmlPstates_t* states,
                                                                   unsigned int size) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSupportedPerformanceStates, device);
  GANTRY_NEED(states);
  const size_t count = size / sizeof *states;
  if (count < 1) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < count; ++i) states[i] = NVML_PSTATE_UNKNOWN;
  size_t used = 0;
  const auto pstate = static_cast<nvmlPstates_t>(gpu_now(target.gpu).pstate);
  if (pstate != NVML_PSTATE_0) states[used++] = pstate;
  if (used < count) states[used] = NVML_PSTATE_0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device,
                                                        nvmlPerfPolicyType_t policy,
                                                        nvmlViolationTime_t* time) {
  GANTRY_ENTER_GPU(nvmlDeviceGetViolationStatus, device);
  GANTRY_NEED(time);
  if (policy >= NVML_PERF_POLICY_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  *time = {gantry::sim::now_us(), 0};
  return NVML_SUCCESS;
}

namespace gantry::sim::nvml {

bool energy_of(const Target& target, unsigned long long& millijoules) {
  const auto now = gpu_now(target.gpu);
  if (target.card->nvml_architecture < NVML_DEVICE_ARCH_VOLTA || now.power_mw == GANTRY_SIM_UNSET) {
    return false;
  }
  millijoules = now_us() / 1000 * static_cast<unsigned long long>(now.power_mw) / 1000;
  return true;
}

}  // namespace gantry::sim::nvml
