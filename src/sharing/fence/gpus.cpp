// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/gpus.hpp"

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"

#include <string.h>

namespace gantry::fence {
namespace {

struct Gpus {
  uint32_t ready;
  uint32_t count;               // visible devices
  uint32_t of[FENCE_MAX_GPUS];  // by device
};
constinit Gpus gpus{};

uint32_t by_uuid(const CUuuid& uuid) {
  const FenceLimits& share = limits();
  for (uint32_t gpu = 0; gpu < host.gpu_count; ++gpu) {
    if (memcmp(share.gpu[gpu].uuid, uuid.bytes, sizeof uuid.bytes) == 0) return gpu;
  }
  return kNoGpu;
}

uint32_t identify(CUdevice device) {
  CUuuid uuid{};
  CUresult result = real().cuDeviceGetUuid_v2(&uuid, device);
  if (result == CUDA_ERROR_NOT_SUPPORTED) result = real().cuDeviceGetUuid(&uuid, device);
  return result == CUDA_SUCCESS ? by_uuid(uuid) : kNoGpu;
}

}  // namespace

// Several threads may run this at once; they write the same values.
void find_gpus() {
  if (!attached() || __atomic_load_n(&gpus.ready, __ATOMIC_ACQUIRE) != 0) return;
  int count = 0;
  if (real().cuDeviceGetCount(&count) != CUDA_SUCCESS || count < 0) return;
  if (count > FENCE_MAX_GPUS) count = FENCE_MAX_GPUS;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    const bool known = real().cuDeviceGet(&device, ordinal) == CUDA_SUCCESS && device == ordinal;
    __atomic_store_n(&gpus.of[ordinal], known ? identify(device) : kNoGpu, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&gpus.count, static_cast<uint32_t>(count), __ATOMIC_RELAXED);
  __atomic_store_n(&gpus.ready, 1, __ATOMIC_RELEASE);
}

void reset_gpus_after_fork() {
  gpus = {};
}

uint32_t gpu_of(CUdevice device) {
  if (__atomic_load_n(&gpus.ready, __ATOMIC_ACQUIRE) == 0 || device < 0 ||
      static_cast<uint32_t>(device) >= __atomic_load_n(&gpus.count, __ATOMIC_RELAXED))
    return kNoGpu;
  return __atomic_load_n(&gpus.of[device], __ATOMIC_RELAXED);
}

// With one device no query is needed: without a context the driver itself returns an error.
uint32_t current_gpu() {
  if (__atomic_load_n(&gpus.ready, __ATOMIC_ACQUIRE) == 0) return kNoGpu;
  if (__atomic_load_n(&gpus.count, __ATOMIC_RELAXED) == 1) return gpu_of(0);
  CUdevice device = 0;
  return real().cuCtxGetDevice(&device) == CUDA_SUCCESS ? gpu_of(device) : kNoGpu;
}

CUdevice device_of(uint32_t gpu) {
  const uint32_t count = __atomic_load_n(&gpus.count, __ATOMIC_ACQUIRE);
  for (uint32_t device = 0; device < count; ++device) {
    if (__atomic_load_n(&gpus.of[device], __ATOMIC_RELAXED) == gpu)
      return static_cast<CUdevice>(device);
  }
  return CU_DEVICE_INVALID;
}

bool is_device(CUdevice device) {
  return device >= 0 &&
         static_cast<uint32_t>(device) < __atomic_load_n(&gpus.count, __ATOMIC_ACQUIRE);
}

bool more_than_one_device() {
  return __atomic_load_n(&gpus.count, __ATOMIC_RELAXED) > 1;
}

}  // namespace gantry::fence
