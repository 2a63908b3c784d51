// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

void set_known(bool known, const char* format, unsigned value, Text& out) {
  if (known) {
    out.set(format, value);
  } else {
    out.set("%s", kNotAvailable);
  }
}

void set_watts(bool known, unsigned milliwatts, Text& out) {
  known ? out.set("%.2f W", milliwatts / 1000.0) : out.set("%s", kNotAvailable);
}

void set_mebibytes(bool known, unsigned long long bytes, Text& out) {
  known ? out.set("%llu MiB", mebibytes(bytes)) : out.set("%s", kNotAvailable);
}

bool read_field_value(const Gpu& gpu, unsigned id, long long* out) {
  nvmlFieldValue_t value = {};
  value.fieldId = id;
  if (call(nvml_of(gpu).nvmlDeviceGetFieldValues, gpu.handle, 1, &value) != NVML_SUCCESS ||
      value.nvmlReturn != NVML_SUCCESS) {
    return false;
  }
  switch (value.valueType) {
    case NVML_VALUE_TYPE_SIGNED_INT: *out = value.value.siVal; return true;
    case NVML_VALUE_TYPE_UNSIGNED_INT: *out = value.value.uiVal; return true;
    case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
      *out = static_cast<long long>(value.value.ullVal);
      return true;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG: *out = value.value.sllVal; return true;
    case NVML_VALUE_TYPE_UNSIGNED_LONG:
      *out = static_cast<long long>(value.value.ulVal);
      return true;
    default: return false;
  }
}

struct Memory {
  bool known = false;
  bool has_reserved = false;
  unsigned long long total = 0, reserved = 0, used = 0, free = 0;
};

// Drivers before 510 have no "reserved": it is part of what is used.
Memory read_memory(const Gpu& gpu) {
  Memory out;
  nvmlMemory_v2_t modern = {};
  modern.version = nvmlMemory_v2;
  if (call(nvml_of(gpu).nvmlDeviceGetMemoryInfo_v2, gpu.handle, &modern) == NVML_SUCCESS) {
    out = {true, true, modern.total, modern.reserved, modern.used, modern.free};
    return out;
  }
  nvmlMemory_t old = {};
  if (call(nvml_of(gpu).nvmlDeviceGetMemoryInfo, gpu.handle, &old) == NVML_SUCCESS) {
    out = {true, false, old.total, 0, old.used, old.free};
  }
  return out;
}

bool read_reasons(const Gpu& gpu, unsigned long long* reasons) {
  return call(nvml_of(gpu).nvmlDeviceGetCurrentClocksEventReasons, gpu.handle, reasons) ==
             NVML_SUCCESS ||
         call(nvml_of(gpu).nvmlDeviceGetCurrentClocksThrottleReasons, gpu.handle, reasons) ==
             NVML_SUCCESS;
}

using ClockCall = nvmlReturn_t(nvmlDevice_t, nvmlClockType_t, unsigned*);

void read_clock(ClockCall* function, const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned mhz = 0;
  const bool known =
      call(function, gpu.handle, static_cast<nvmlClockType_t>(arg.which), &mhz) == NVML_SUCCESS;
  set_known(known, "%u MHz", mhz, out);
}

const char* on_off(nvmlEnableState_t state) {
  return state == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled";
}

}  // namespace

unsigned long long mebibytes(unsigned long long bytes) {
  return (bytes + 1048575) / 1048576;
}

bool mig_enabled(const Gpu& gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  return call(nvml_of(gpu).nvmlDeviceGetMigMode, gpu.handle, &current, &pending) == NVML_SUCCESS &&
         current == NVML_DEVICE_MIG_ENABLE;
}

void display_attached(const Gpu& gpu, const Arg&, Text& out) {
  nvmlEnableState_t state = NVML_FEATURE_DISABLED;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetDisplayMode, gpu.handle, &state) == NVML_SUCCESS;
  out.set("%s", !known ? kNotAvailable : state == NVML_FEATURE_ENABLED ? "Yes" : "No");
}

void display_active(const Gpu& gpu, const Arg&, Text& out) {
  nvmlEnableState_t state = NVML_FEATURE_DISABLED;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetDisplayActive, gpu.handle, &state) == NVML_SUCCESS;
  out.set("%s", known ? on_off(state) : kNotAvailable);
}

void persistence(const Gpu& gpu, const Arg&, Text& out) {
  nvmlEnableState_t state = NVML_FEATURE_DISABLED;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPersistenceMode, gpu.handle, &state) == NVML_SUCCESS;
  out.set("%s", known ? on_off(state) : kNotAvailable);
}

void mig_mode(const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned mode[2] = {};
  if (call(nvml_of(gpu).nvmlDeviceGetMigMode, gpu.handle, &mode[0], &mode[1]) != NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  out.set("%s", mode[arg.which & 1] == NVML_DEVICE_MIG_ENABLE ? "Enabled" : "Disabled");
}

void compute_mode(const Gpu& gpu, const Arg&, Text& out) {
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
  if (call(nvml_of(gpu).nvmlDeviceGetComputeMode, gpu.handle, &mode) != NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  static constexpr const char* kModes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                           "Exclusive_Process"};
  out.set("%s", kModes[static_cast<unsigned>(mode) & 3U]);
}

void recovery_action(const Gpu& gpu, const Arg&, Text& out) {
  static constexpr const char* kActions[] = {"None", "Reset", "Reboot", "Drain P2P",
                                             "Drain and Reset"};
  long long action = 0;
  const bool known = read_field_value(gpu, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, &action);
  out.set("%s", known && action >= 0 && action < 5 ? kActions[action] : kNotAvailable);
}

void replays(const Gpu& gpu, const Arg&, Text& out) {
  unsigned value = 0;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPcieReplayCounter, gpu.handle, &value) == NVML_SUCCESS;
  set_known(known, "%u", value, out);
}

void throughput(const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned value = 0;
  const auto counter = arg.which == 0 ? NVML_PCIE_UTIL_TX_BYTES : NVML_PCIE_UTIL_RX_BYTES;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPcieThroughput, gpu.handle, counter, &value) == NVML_SUCCESS;
  set_known(known, "%u KB/s", value, out);
}

void fan_speed(const Gpu& gpu, const Arg&, Text& out) {
  unsigned percent = 0;
  const bool known = call(nvml_of(gpu).nvmlDeviceGetFanSpeed, gpu.handle, &percent) == NVML_SUCCESS;
  set_known(known, "%u %%", percent, out);
}

void performance_state(const Gpu& gpu, const Arg&, Text& out) {
  nvmlPstates_t state = NVML_PSTATE_UNKNOWN;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPerformanceState, gpu.handle, &state) == NVML_SUCCESS &&
      state != NVML_PSTATE_UNKNOWN;
  set_known(known, "P%u", static_cast<unsigned>(state), out);
}

void event_reason(const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned long long reasons = 0;
  if (!read_reasons(gpu, &reasons)) {
    out.set("%s", kNotAvailable);
  } else if (arg.which == 0) {
    out.set("0x%016llX", reasons);
  } else {
    out.set("%s", (reasons & static_cast<unsigned>(arg.which)) != 0 ? "Active" : "Not Active");
  }
}

void event_reasons_supported(const Gpu& gpu, const Arg&, Text& out) {
  unsigned long long reasons = 0;
  const Nvml& nvml = nvml_of(gpu);
  if (call(nvml.nvmlDeviceGetSupportedClocksEventReasons, gpu.handle, &reasons) != NVML_SUCCESS &&
      call(nvml.nvmlDeviceGetSupportedClocksThrottleReasons, gpu.handle, &reasons) !=
          NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  out.set("0x%016llX", reasons);
}

void fb_memory(const Gpu& gpu, const Arg& arg, Text& out) {
  const Memory memory = read_memory(gpu);
  switch (static_cast<Mem>(arg.which)) {
    case Mem::Total: set_mebibytes(memory.known, memory.total, out); break;
    case Mem::Reserved: set_mebibytes(memory.has_reserved, memory.reserved, out); break;
    case Mem::Used: set_mebibytes(memory.known, memory.used, out); break;
    case Mem::Free: set_mebibytes(memory.known, memory.free, out); break;
  }
}

void bar1_memory(const Gpu& gpu, const Arg& arg, Text& out) {
  nvmlBAR1Memory_t memory = {};
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetBAR1MemoryInfo, gpu.handle, &memory) == NVML_SUCCESS;
  switch (static_cast<Mem>(arg.which)) {
    case Mem::Used: set_mebibytes(known, memory.bar1Used, out); break;
    case Mem::Free: set_mebibytes(known, memory.bar1Free, out); break;
    default: set_mebibytes(known, memory.bar1Total, out); break;
  }
}

void utilization(const Gpu& gpu, const Arg& arg, Text& out) {
  const Nvml& nvml = nvml_of(gpu);
  unsigned percent = 0;
  unsigned period = 0;
  bool known = false;
  nvmlUtilization_t rates = {};
  switch (static_cast<Util>(arg.which)) {
    case Util::Gpu:
    case Util::Memory:
      known = call(nvml.nvmlDeviceGetUtilizationRates, gpu.handle, &rates) == NVML_SUCCESS;
      percent = static_cast<Util>(arg.which) == Util::Gpu ? rates.gpu : rates.memory;
      break;
    case Util::Encoder:
      known =
          call(nvml.nvmlDeviceGetEncoderUtilization, gpu.handle, &percent, &period) == NVML_SUCCESS;
      break;
    case Util::Decoder:
      known =
          call(nvml.nvmlDeviceGetDecoderUtilization, gpu.handle, &percent, &period) == NVML_SUCCESS;
      break;
    case Util::Jpeg:
      known = call(nvml.nvmlDeviceGetJpgUtilization, gpu.handle, &percent, &period) == NVML_SUCCESS;
      break;
    case Util::Ofa:
      known = call(nvml.nvmlDeviceGetOfaUtilization, gpu.handle, &percent, &period) == NVML_SUCCESS;
      break;
  }
  set_known(known, "%u %%", percent, out);
}

void temperature(const Gpu& gpu, const Arg&, Text& out) {
  unsigned celsius = 0;
  const bool known = call(nvml_of(gpu).nvmlDeviceGetTemperature, gpu.handle, NVML_TEMPERATURE_GPU,
                          &celsius) == NVML_SUCCESS;
  set_known(known, "%u C", celsius, out);
}

bool has_temperature_margin(const Gpu& gpu) {
  Text margin;
  temperature_margin(gpu, {}, margin);
  return !margin.is(kNotAvailable);
}

void temperature_margin(const Gpu& gpu, const Arg&, Text& out) {
  nvmlMarginTemperature_t margin = {};
  margin.version = nvmlMarginTemperature_v1;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetMarginTemperature, gpu.handle, &margin) == NVML_SUCCESS;
  known ? out.set("%d C", margin.marginTemperature) : out.set("%s", kNotAvailable);
}

void temperature_threshold(const Gpu& gpu, const Arg& arg, Text& out) {
  long long relative = 0;
  if (has_temperature_margin(gpu)) {
    static constexpr unsigned kLimits[] = {
        NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT,
        NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT};
    if (read_field_value(gpu, kLimits[arg.which & 3], &relative)) {
      out.set("%lld C", relative);
    } else {
      out.set("%s", arg.key != nullptr ? field_or(gpu, arg.key, kNotAvailable) : kNotAvailable);
    }
    return;
  }
  unsigned celsius = 0;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetTemperatureThreshold, gpu.handle,
           static_cast<nvmlTemperatureThresholds_t>(arg.which), &celsius) == NVML_SUCCESS;
  set_known(known, "%u C", celsius, out);
}

void memory_temperature(const Gpu& gpu, const Arg&, Text& out) {
  long long celsius = 0;
  const bool known = read_field_value(gpu, NVML_FI_DEV_MEMORY_TEMP, &celsius) && celsius > 0;
  known ? out.set("%lld C", celsius) : out.set("%s", kNotAvailable);
}

void power_draw(const Gpu& gpu, const Arg& arg, Text& out) {
  long long value = 0;
  if (arg.which != 0 && read_field_value(gpu, static_cast<unsigned>(arg.which), &value)) {
    set_watts(true, static_cast<unsigned>(value), out);
    return;
  }
  unsigned milliwatts = 0;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPowerUsage, gpu.handle, &milliwatts) == NVML_SUCCESS;
  set_watts(known, milliwatts, out);
}

void power_limit(const Gpu& gpu, const Arg& arg, Text& out) {
  const Nvml& nvml = nvml_of(gpu);
  unsigned value = 0;
  unsigned other = 0;
  nvmlReturn_t error = NVML_ERROR_NOT_SUPPORTED;
  switch (arg.which) {
    case 0: error = call(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu.handle, &value); break;
    case 1: error = call(nvml.nvmlDeviceGetPowerManagementLimit, gpu.handle, &value); break;
    case 2: error = call(nvml.nvmlDeviceGetPowerManagementDefaultLimit, gpu.handle, &value); break;
    case 3:
      error = call(nvml.nvmlDeviceGetPowerManagementLimitConstraints, gpu.handle, &value, &other);
      break;
    default:
      error = call(nvml.nvmlDeviceGetPowerManagementLimitConstraints, gpu.handle, &other, &value);
      break;
  }
  set_watts(error == NVML_SUCCESS, value, out);
}

void power_management(const Gpu& gpu, const Arg& arg, Text& out) {
  nvmlEnableState_t state = NVML_FEATURE_DISABLED;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetPowerManagementMode, gpu.handle, &state) == NVML_SUCCESS;
  const char* enabled = arg.which == 0 ? on_off(state) : "Supported";
  out.set("%s", known ? enabled : kNotAvailable);
}

void clock_now(const Gpu& gpu, const Arg& arg, Text& out) {
  read_clock(nvml_of(gpu).nvmlDeviceGetClockInfo, gpu, arg, out);
}
void clock_max(const Gpu& gpu, const Arg& arg, Text& out) {
  read_clock(nvml_of(gpu).nvmlDeviceGetMaxClockInfo, gpu, arg, out);
}
void clock_application(const Gpu& gpu, const Arg& arg, Text& out) {
  read_clock(nvml_of(gpu).nvmlDeviceGetApplicationsClock, gpu, arg, out);
}
void clock_default(const Gpu& gpu, const Arg& arg, Text& out) {
  read_clock(nvml_of(gpu).nvmlDeviceGetDefaultApplicationsClock, gpu, arg, out);
}
void clock_boost(const Gpu& gpu, const Arg& arg, Text& out) {
  read_clock(nvml_of(gpu).nvmlDeviceGetMaxCustomerBoostClock, gpu, arg, out);
}

}  // namespace smi
