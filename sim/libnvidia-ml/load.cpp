// SPDX-License-Identifier: Apache-2.0
// How busy a card is.

#include "sim/libnvidia-ml/usage_internal.hpp"

#include <time.h>

using namespace gantry::sim::nvml;

namespace {

constexpr unsigned int kSamplingPeriodUs = 100000;

nvmlReturn_t idle_engine(nvmlDevice_t device, unsigned int* utilization, unsigned int* period_us) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(utilization);
  GANTRY_NEED(period_us);
  *utilization = 0;
  *period_us = kSamplingPeriodUs;
  return NVML_SUCCESS;
}

unsigned int greater(unsigned int one, unsigned int other) {
  return one > other ? one : other;
}

bool sample_of(const Target& target, nvmlSamplingType_t type, unsigned int& value) {
  const auto now = gpu_now(target.gpu);
  switch (type) {
    case NVML_TOTAL_POWER_SAMPLES:
      value = static_cast<unsigned int>(now.power_mw);
      return now.power_mw != GANTRY_SIM_UNSET;
    case NVML_GPU_UTILIZATION_SAMPLES:
      value = greater(now.utilization_gpu, ProcessLoad(target).of_card());
      return true;
    case NVML_MEMORY_UTILIZATION_SAMPLES: value = now.utilization_memory; return true;
    case NVML_ENC_UTILIZATION_SAMPLES:
    case NVML_DEC_UTILIZATION_SAMPLES:
    case NVML_JPG_UTILIZATION_SAMPLES:
    case NVML_OFA_UTILIZATION_SAMPLES: value = 0; return true;
    case NVML_PROCESSOR_CLK_SAMPLES: value = target.card->clock_sm; return true;
    case NVML_MEMORY_CLK_SAMPLES: value = target.card->clock_memory; return true;
    default: return false;
  }
}

// The time since the caller's last sample, limited at both ends.
uint64_t window_ns(unsigned long long last_seen_us, unsigned long long now_us) {
  const unsigned long long passed = last_seen_us == 0 ? 1000000 : now_us - last_seen_us;
  return (passed < 100000 ? 100000 : passed > 3000000 ? 3000000 : passed) * 1000;
}

// Divides the card's load equally among the processes that hold memory on it.
unsigned int share(unsigned int total, size_t parts) {
  return parts == 0 ? 0 : total / static_cast<unsigned int>(parts);
}

}  // namespace

// With MIG enabled there is no load of the whole card.
GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                         nvmlUtilization_t* utilization) {
  GANTRY_ENTER_GPU(nvmlDeviceGetUtilizationRates, device);
  GANTRY_NEED(utilization);
  const auto now = gpu_now(target.gpu);
  if (now.mig_current != 0) return NVML_ERROR_NOT_SUPPORTED;
  *utilization = {greater(now.utilization_gpu, ProcessLoad(target).of_card()),
                  now.utilization_memory};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device,
                                                           unsigned int* utilization,
                                                           unsigned int* period_us) {
  GANTRY_ENTER(nvmlDeviceGetEncoderUtilization);
  return idle_engine(device, utilization, period_us);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device,
                                                           unsigned int* utilization,
                                                           unsigned int* period_us) {
  GANTRY_ENTER(nvmlDeviceGetDecoderUtilization);
  return idle_engine(device, utilization, period_us);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device,
                                                       unsigned int* utilization,
                                                       unsigned int* period_us) {
  GANTRY_ENTER(nvmlDeviceGetJpgUtilization);
  return idle_engine(device, utilization, period_us);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device,
                                                       unsigned int* utilization,
                                                       unsigned int* period_us) {
  GANTRY_ENTER(nvmlDeviceGetOfaUtilization);
  return idle_engine(device, utilization, period_us);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t device, nvmlEncoderType_t,
                                                        unsigned int* capacity) {
  GANTRY_ENTER_GPU(nvmlDeviceGetEncoderCapacity, device);
  GANTRY_NEED(capacity);
  *capacity = 100;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int* sessions,
                                                     unsigned int* fps, unsigned int* latency) {
  GANTRY_ENTER_GPU(nvmlDeviceGetEncoderStats, device);
  GANTRY_NEED(sessions);
  GANTRY_NEED(fps);
  GANTRY_NEED(latency);
  *sessions = *fps = *latency = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int* count,
                                                        nvmlEncoderSessionInfo_t*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetEncoderSessions, device);
  GANTRY_NEED(count);
  *count = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t* stats) {
  GANTRY_ENTER_GPU(nvmlDeviceGetFBCStats, device);
  GANTRY_NEED(stats);
  *stats = {};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                                unsigned long long last_seen,
                                                nvmlValueType_t* value_type, unsigned int* count,
                                                nvmlSample_t* samples) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSamples, device);
  GANTRY_NEED(value_type);
  GANTRY_NEED(count);
  unsigned int value = 0;
  if (!sample_of(target, type, value)) return NVML_ERROR_NOT_SUPPORTED;
  *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
  const unsigned long long now = wall_us();
  if (last_seen >= now) return NVML_ERROR_NOT_FOUND;
  if (samples != nullptr) {
    if (*count < 1) return NVML_ERROR_INSUFFICIENT_SIZE;
    samples[0] = {};
    samples[0].timeStamp = now;
    samples[0].sampleValue.uiVal = value;
  }
  *count = 1;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                           nvmlProcessUtilizationSample_t* samples,
                                                           unsigned int* count,
                                                           unsigned long long last_seen) {
  GANTRY_ENTER_GPU(nvmlDeviceGetProcessUtilization, device);
  GANTRY_NEED(count);
  const MemoryUses uses(target);
  const auto now = gpu_now(target.gpu);
  const unsigned long long stamp = wall_us();
  if (uses.size() == 0 || last_seen >= stamp) {
    *count = 0;
    return NVML_ERROR_NOT_FOUND;
  }
  if (samples == nullptr || *count < uses.size()) {
    *count = static_cast<unsigned int>(uses.size());
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = 0;
  const ProcessLoad busy(target, window_ns(last_seen, stamp));
  for (const auto& use : uses) {
    if (use.pid <= 0) continue;
    const unsigned int load =
        greater(share(now.utilization_gpu, uses.size()), busy.of_process(use.pid));
    samples[(*count)++] = {static_cast<unsigned int>(use.pid),         stamp, load,
                           share(now.utilization_memory, uses.size()), 0,     0};
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t
nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetProcessesUtilizationInfo, device);
  GANTRY_NEED(info);
  if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const MemoryUses uses(target);
  const auto now = gpu_now(target.gpu);
  const unsigned long long stamp = wall_us();
  if (uses.size() == 0 || info->lastSeenTimeStamp >= stamp) {
    info->processSamplesCount = 0;
    return NVML_ERROR_NOT_FOUND;
  }
  if (info->procUtilArray == nullptr || info->processSamplesCount < uses.size()) {
    info->processSamplesCount = static_cast<unsigned int>(uses.size());
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  info->processSamplesCount = 0;
  const ProcessLoad busy(target, window_ns(info->lastSeenTimeStamp, stamp));
  for (const auto& use : uses) {
    if (use.pid <= 0) continue;
    const unsigned int load =
        greater(share(now.utilization_gpu, uses.size()), busy.of_process(use.pid));
    info->procUtilArray[info->processSamplesCount++] = {
        stamp, static_cast<unsigned int>(use.pid),
        load,  share(now.utilization_memory, uses.size()),
        0,     0,
        0,     0};
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device,
                                                           nvmlGpuDynamicPstatesInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDynamicPstatesInfo, device);
  GANTRY_NEED(info);
  const auto now = gpu_now(target.gpu);
  *info = {};
  const unsigned int load[4] = {now.utilization_gpu, now.utilization_memory, 0, 0};
  for (int i = 0; i < 4; ++i) info->utilization[i] = {1, load[i], 0, 0};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device,
                                                     nvmlGpmSupport_t* support) {
  GANTRY_ENTER_GPU(nvmlGpmQueryDeviceSupport, device);
  GANTRY_NEED(support);
  support->isSupportedDevice = 0;  // no counters to sample
  return NVML_SUCCESS;
}
