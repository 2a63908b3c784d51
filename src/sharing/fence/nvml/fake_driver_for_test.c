/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake NVML driver that lists the given processes in every list, also in lists that are always
 * empty in the simulated driver (graphics, MPS clients, accounting). Any handle that is not NULL
 * is its one GPU.
 */
#include "gpu/abi/nvml.h"

#include <string.h>

#define MOST 512
static unsigned int pids[MOST];
static unsigned int pid_count;
static int new_ones_per_call;

void fakeProcesses(const unsigned int* list, unsigned int count, int growing);
void fakeProcesses(const unsigned int* list, unsigned int count, int growing) {
  memcpy(pids, list, count * sizeof *pids);
  pid_count = count;
  new_ones_per_call = growing;
}

static void grow(void) {
  for (int i = 0; i < new_ones_per_call && pid_count < MOST; ++i) {
    pids[pid_count] = 500000 + pid_count;
    ++pid_count;
  }
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  static const char text[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";
  if (device == 0 || uuid == 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (length < sizeof text) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(uuid, text, sizeof text);
  return NVML_SUCCESS;
}

#define LIST(function, info)                                                     \
  nvmlReturn_t function(nvmlDevice_t device, unsigned int* count, info* infos) { \
    if (device == 0 || count == 0) return NVML_ERROR_INVALID_ARGUMENT;           \
    const unsigned int room = *count;                                            \
    grow();                                                                      \
    *count = pid_count;                                                          \
    if (room < pid_count) return NVML_ERROR_INSUFFICIENT_SIZE;                   \
    memset(infos, 0, pid_count * sizeof *infos);                                 \
    for (unsigned int i = 0; i < pid_count; ++i) infos[i].pid = pids[i];         \
    return NVML_SUCCESS;                                                         \
  }
LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_t* list) {
  if (device == 0 || list == 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const unsigned int room = list->numProcArrayEntries;
  list->numProcArrayEntries = pid_count;
  if (room < pid_count) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < pid_count; ++i) list->procArray[i].pid = pids[i];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* samples,
                                             unsigned int* count, unsigned long long last_seen) {
  if (device == 0 || count == 0) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned int room = *count;
  *count = pid_count;
  if (pid_count == 0) return NVML_ERROR_NOT_FOUND;
  if (samples == 0 || room < pid_count) return NVML_ERROR_INSUFFICIENT_SIZE;
  memset(samples, 0, pid_count * sizeof *samples);
  for (unsigned int i = 0; i < pid_count; ++i) {
    samples[i].pid = pids[i];
    samples[i].timeStamp = last_seen + 1;
    samples[i].smUtil = pids[i] % 100;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t* info) {
  if (device == 0 || info == 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const unsigned int room = info->processSamplesCount;
  info->processSamplesCount = pid_count;
  if (pid_count == 0) return NVML_ERROR_NOT_FOUND;
  if (info->procUtilArray == 0 || room < pid_count) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < pid_count; ++i) {
    memset(&info->procUtilArray[i], 0, sizeof *info->procUtilArray);
    info->procUtilArray[i].pid = pids[i];
    info->procUtilArray[i].smUtil = pids[i] % 100;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count,
                                         unsigned int* out) {
  if (device == 0 || count == 0) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned int room = *count;
  *count = pid_count;
  if (room < pid_count) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, pids, pid_count * sizeof *pids);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t* stats) {
  if (device == 0 || stats == 0) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned int i = 0; i < pid_count; ++i) {
    if (pids[i] != pid) continue;
    memset(stats, 0, sizeof *stats);
    stats->time = pid;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device,
                                                          nvmlMemory_t* memory) {
  if (device == 0 || memory == 0) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = 1000;
  memory->free = 600;
  memory->used = 400;
  return NVML_SUCCESS;
}
