// SPDX-License-Identifier: Apache-2.0
// Utilisation and accounting of processes: only the share's own.
#include "sharing/fence/nvml/real_internal.hpp"
#include "sharing/fence/nvml/share_internal.hpp"
#include "sharing/fence/nvml/whole_list_internal.hpp"

using namespace gantry::fence::nvml;

namespace {

// As in the driver: without new samples the result is NVML_ERROR_NOT_FOUND, and with too small a
// buffer it is the size needed.
template <typename Sample>
nvmlReturn_t narrow_samples(const Share& share, const DriverList<Sample>& all, Sample* samples,
                            unsigned int* count) {
  OutputList<Sample> shown(samples, *count);
  for (Sample sample : all) {
    if (share.own(sample.pid, sample.pid)) shown.add(sample);
  }
  const nvmlReturn_t result = shown.end(count);
  return *count == 0 ? NVML_ERROR_NOT_FOUND : result;
}

}  // namespace

FENCE_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                          nvmlProcessUtilizationSample_t* samples,
                                                          unsigned int* count,
                                                          unsigned long long last_seen) {
  const auto real = FENCE_REAL(nvmlDeviceGetProcessUtilization);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const Share share(device);
  if (share.standing() == Membership::NotInShare || count == nullptr) {
    return real(device, samples, count, last_seen);
  }
  if (share.standing() == Membership::Unknown) return Share::kUnknown;
  DriverList<nvmlProcessUtilizationSample_t> all;
  const nvmlReturn_t result =
      all.fill([&](unsigned int* size, nvmlProcessUtilizationSample_t* items) {
        return real(device, items, size, last_seen);
      });
  if (result != NVML_SUCCESS) {
    if (result == NVML_ERROR_NOT_FOUND) *count = 0;
    return result;
  }
  return narrow_samples(share, all, samples, count);
}

FENCE_EXPORT nvmlReturn_t
nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t* info) {
  const auto real = FENCE_REAL(nvmlDeviceGetProcessesUtilizationInfo);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const Share share(device);
  if (share.standing() == Membership::NotInShare || info == nullptr) return real(device, info);
  if (share.standing() == Membership::Unknown) return Share::kUnknown;
  DriverList<nvmlProcessUtilizationInfo_v1_t> all;
  const nvmlReturn_t result =
      all.fill([&](unsigned int* size, nvmlProcessUtilizationInfo_v1_t* items) {
        nvmlProcessesUtilizationInfo_t whole{info->version, *size, info->lastSeenTimeStamp, items};
        const nvmlReturn_t got = real(device, &whole);
        *size = whole.processSamplesCount;
        return got;
      });
  if (result != NVML_SUCCESS) {
    if (result == NVML_ERROR_NOT_FOUND) info->processSamplesCount = 0;
    return result;
  }
  return narrow_samples(share, all, info->procUtilArray, &info->processSamplesCount);
}

FENCE_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count,
                                                      unsigned int* pids) {
  const auto real = FENCE_REAL(nvmlDeviceGetAccountingPids);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const Share share(device);
  if (share.standing() == Membership::NotInShare || count == nullptr)
    return real(device, count, pids);
  if (share.standing() == Membership::Unknown) return Share::kUnknown;
  DriverList<unsigned int> all;
  const nvmlReturn_t result =
      all.fill([&](unsigned int* size, unsigned int* items) { return real(device, size, items); });
  if (result != NVML_SUCCESS) return result;
  if (pids == nullptr && *count > 0) return NVML_ERROR_INVALID_ARGUMENT;
  OutputList<unsigned int> shown(pids, *count);
  for (unsigned int pid : all) {
    if (share.own(pid, pid)) shown.add(pid);
  }
  return shown.end(count);
}

// Tries the host's pid first: with the reader's pid, a driver that uses host pids would answer for
// another process.
FENCE_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                                       nvmlAccountingStats_t* stats) {
  const auto real = FENCE_REAL(nvmlDeviceGetAccountingStats);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const Share share(device);
  if (share.standing() == Membership::NotInShare || stats == nullptr)
    return real(device, pid, stats);
  if (share.standing() == Membership::Unknown) return Share::kUnknown;
  const unsigned int host = share.host_pid(pid);
  if (host == 0) return NVML_ERROR_NOT_FOUND;
  const nvmlReturn_t result = real(device, host, stats);
  return result == NVML_ERROR_NOT_FOUND && host != pid ? real(device, pid, stats) : result;
}
