// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <stdio.h>
#include <stdlib.h>

using namespace gantry::sim::nvml;

namespace {

// A locked clock stays between its bounds; 0 as the upper bound: not locked.
uint32_t within(uint32_t mhz, uint32_t low, uint32_t high) {
  if (high == 0 || mhz == 0) return mhz;
  return mhz < low ? low : mhz > high ? high : mhz;
}

nvmlReturn_t current_clock(const Target& target, nvmlClockType_t type, unsigned int* mhz) {
  const gantry_sim_gpu& card = *target.card;
  const auto now = gpu_now(target.gpu);
  const auto graphics = [&](uint32_t clock) {
    return within(clock, now.graphics_lock_min_mhz, now.graphics_lock_max_mhz);
  };
  switch (type) {
    case NVML_CLOCK_GRAPHICS: return give_positive(graphics(card.clock_graphics), mhz);
    case NVML_CLOCK_SM: return give_positive(graphics(card.clock_sm), mhz);
    case NVML_CLOCK_MEM:
      return give_positive(
          within(card.clock_memory, now.memory_lock_min_mhz, now.memory_lock_max_mhz), mhz);
    case NVML_CLOCK_VIDEO: return give_positive(card.clock_video, mhz);
    default: return NVML_ERROR_INVALID_ARGUMENT;
  }
}

nvmlReturn_t highest(const gantry_sim_gpu& card, nvmlClockType_t type, unsigned int* mhz) {
  switch (type) {
    case NVML_CLOCK_GRAPHICS: return give_positive(card.clock_graphics_max, mhz);
    case NVML_CLOCK_SM: return give_positive(card.clock_sm_max, mhz);
    case NVML_CLOCK_MEM: return give_positive(card.clock_memory_max, mhz);
    case NVML_CLOCK_VIDEO: return give_positive(card.clock_video_max, mhz);
    default: return NVML_ERROR_INVALID_ARGUMENT;
  }
}

// Data-centre cards of Ampere and later have them at their highest clocks; others give none.
nvmlReturn_t application(const gantry_sim_gpu& card, nvmlClockType_t type, unsigned int* mhz) {
  if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  if (type == NVML_CLOCK_VIDEO || card.nvml_architecture < NVML_DEVICE_ARCH_AMPERE ||
      card.ecc_supported == 0) {
    return NVML_ERROR_NOT_SUPPORTED;
  }
  return highest(card, type, mhz);
}

nvmlReturn_t boost(const gantry_sim_gpu& card, nvmlClockType_t type, unsigned int* mhz) {
  if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  if (type == NVML_CLOCK_MEM || type == NVML_CLOCK_VIDEO) return NVML_ERROR_NOT_SUPPORTED;
  if (card.nvml_architecture < NVML_DEVICE_ARCH_PASCAL) return NVML_ERROR_NOT_SUPPORTED;
  return highest(card, type, mhz);
}

nvmlReturn_t reasons_of(nvmlDevice_t device, unsigned long long* out) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  const auto now = gpu_now(target.gpu);
  *out = now.clocks_event_reasons;
  return NVML_SUCCESS;
}

nvmlReturn_t all_reasons(nvmlDevice_t device, unsigned long long* out) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  *out = nvmlClocksEventReasonAll;
  return NVML_SUCCESS;
}

// A list of clocks, highest first, from "3201,2201" or "1980-345/15" (highest, lowest, step) of the
// card; without a list, the only clock that is known.
struct ClockList {
  const char* text;
  unsigned int only;

  // Returns their number; fills at most `room` of them.
  unsigned int read(unsigned int* out, unsigned int room) const {
    unsigned int count = 0;
    const auto add = [&](unsigned long mhz) {
      if (out != nullptr && count < room) out[count] = static_cast<unsigned int>(mhz);
      ++count;
    };
    if (text[0] == '\0') add(only);
    for (const char* at = text; *at != '\0';) {
      char* end = nullptr;
      const unsigned long high = strtoul(at, &end, 10);
      const unsigned long low = *end == '-' ? strtoul(end + 1, &end, 10) : high;
      const unsigned long step = *end == '/' ? strtoul(end + 1, &end, 10) : high;
      if (high == 0 || high > 100000 || low > high || step == 0) break;
      for (unsigned long mhz = high; mhz >= low && mhz != 0; mhz = mhz > step ? mhz - step : 0)
        add(mhz);
      at = *end == ',' ? end + 1 : "";
    }
    return count;
  }
};

nvmlReturn_t list_clocks(const ClockList& clocks, unsigned int* count, unsigned int* out) {
  GANTRY_NEED(count);
  if (clocks.only == 0) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned int room = *count;
  *count = clocks.read(nullptr, 0);
  if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
  GANTRY_NEED(out);
  clocks.read(out, room);
  return NVML_SUCCESS;
}

ClockList memory_clocks(const Target& target) {
  return {gantry_sim_field(static_cast<int32_t>(target.gpu), "clocks.memory_supported"),
          target.card->clock_memory_max};
}

ClockList graphics_clocks(const Target& target) {
  return {gantry_sim_field(static_cast<int32_t>(target.gpu), "clocks.graphics_supported"),
          target.card->clock_graphics_max};
}

bool runs_at(const ClockList& clocks, unsigned int mhz) {
  unsigned int known[64] = {};
  const unsigned int count = clocks.read(known, 64);
  for (unsigned int i = 0; i < count && i < 64; ++i) {
    if (known[i] == mhz) return true;
  }
  return false;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                                  unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetClockInfo, device);
  return current_clock(target, type, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                                     unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMaxClockInfo, device);
  return highest(*target.card, type, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type,
                                              nvmlClockId_t id, unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetClock, device);
  switch (id) {
    case NVML_CLOCK_ID_CURRENT: return current_clock(target, type, mhz);
    case NVML_CLOCK_ID_APP_CLOCK_TARGET:
    case NVML_CLOCK_ID_APP_CLOCK_DEFAULT: return application(*target.card, type, mhz);
    case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX: return boost(*target.card, type, mhz);
    default: return NVML_ERROR_INVALID_ARGUMENT;
  }
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device,
                                                              nvmlClockType_t type,
                                                              unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMaxCustomerBoostClock, device);
  return boost(*target.card, type, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                          unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetApplicationsClock, device);
  return application(*target.card, type, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device,
                                                                 nvmlClockType_t type,
                                                                 unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDefaultApplicationsClock, device);
  return application(*target.card, type, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device,
                                                              unsigned int* count,
                                                              unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSupportedMemoryClocks, device);
  return list_clocks(memory_clocks(target), count, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device,
                                                                unsigned int memory_mhz,
                                                                unsigned int* count,
                                                                unsigned int* mhz) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSupportedGraphicsClocks, device);
  if (!runs_at(memory_clocks(target), memory_mhz)) return NVML_ERROR_INVALID_ARGUMENT;
  return list_clocks(graphics_clocks(target), count, mhz);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_t device,
                                                                 nvmlEnableState_t*,
                                                                 nvmlEnableState_t*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAutoBoostedClocksEnabled, device);
  return NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t device,
                                                                unsigned int* status) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAdaptiveClockInfoStatus, device);
  GANTRY_NEED(status);
  *status = 1;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                                  unsigned long long* reasons) {
  GANTRY_ENTER(nvmlDeviceGetCurrentClocksEventReasons);
  return reasons_of(device, reasons);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                                     unsigned long long* reasons) {
  GANTRY_ENTER(nvmlDeviceGetCurrentClocksThrottleReasons);
  return reasons_of(device, reasons);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                                    unsigned long long* reasons) {
  GANTRY_ENTER(nvmlDeviceGetSupportedClocksEventReasons);
  return all_reasons(device, reasons);
}

GANTRY_EXPORT nvmlReturn_t
nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  GANTRY_ENTER(nvmlDeviceGetSupportedClocksThrottleReasons);
  return all_reasons(device, reasons);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device,
                                                         nvmlDevicePerfModes_t* modes) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPerformanceModes, device);
  GANTRY_NEED(modes);
  if (modes->version != nvmlDevicePerfModes_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  snprintf(modes->str, sizeof modes->str, "perf=0, nvclock=%u, nvclockmax=%u, memclock=%u",
           target.card->clock_graphics, target.card->clock_graphics_max, target.card->clock_memory);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t
nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device, nvmlDeviceCurrentClockFreqs_t* frequencies) {
  GANTRY_ENTER_GPU(nvmlDeviceGetCurrentClockFreqs, device);
  GANTRY_NEED(frequencies);
  if (frequencies->version != nvmlDeviceCurrentClockFreqs_v1) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  snprintf(frequencies->str, sizeof frequencies->str, "nvclock=%u, nvclockmax=%u, memclock=%u",
           target.card->clock_graphics, target.card->clock_graphics_max, target.card->clock_memory);
  return NVML_SUCCESS;
}
