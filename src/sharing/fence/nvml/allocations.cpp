// SPDX-License-Identifier: Apache-2.0
// Memory: the hooks report the share as if it were the GPU. The driver is called first; if it
// returns an error (a lost GPU, a wrong version of the struct, no pointer), the hook returns the
// same error.
#include "sharing/fence/nvml/real_internal.hpp"
#include "sharing/fence/nvml/share_internal.hpp"

using namespace gantry::fence::nvml;

namespace {

struct Amounts {
  unsigned long long total, reserved, free, used;
};

// If the GPU has less free memory than the share, the difference is reported as reserved.
Amounts amounts(const Share& share, unsigned long long card_total, unsigned long long card_free) {
  Amounts out{};
  const uint64_t limit = share.limit();
  const uint64_t used = share.used();
  out.total = limit < card_total ? limit : card_total;
  out.used = used < out.total ? used : out.total;
  const unsigned long long room = out.total - out.used;
  out.free = room < card_free ? room : card_free;
  out.reserved = room - out.free;
  return out;
}

// Versions of the struct without a field for reserved memory count it as used, as the driver does.
nvmlReturn_t narrow_memory(nvmlDevice_t device, nvmlMemory_t& memory) {
  const Share share(device);
  if (share.standing() == Membership::Unknown) {
    memory = {};
    return Share::kUnknown;
  }
  if (share.standing() == Membership::NotInShare || !share.limits_memory()) return NVML_SUCCESS;
  const Amounts now = amounts(share, memory.total, memory.free);
  memory = {now.total, now.free, now.used + now.reserved};
  return NVML_SUCCESS;
}

}  // namespace

FENCE_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  const auto real = FENCE_REAL(nvmlDeviceGetMemoryInfo);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const nvmlReturn_t result = real(device, memory);
  return result != NVML_SUCCESS || memory == nullptr ? result : narrow_memory(device, *memory);
}

FENCE_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  const auto real = FENCE_REAL(nvmlDeviceGetMemoryInfo_v2);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const nvmlReturn_t result = real(device, memory);
  if (result != NVML_SUCCESS || memory == nullptr) return result;
  const Share share(device);
  if (share.standing() == Membership::Unknown) {
    *memory = {memory->version, 0, 0, 0, 0};
    return Share::kUnknown;
  }
  if (share.standing() == Membership::NotInShare || !share.limits_memory()) return result;
  const Amounts now = amounts(share, memory->total, memory->free);
  *memory = {memory->version, now.total, now.reserved, now.free, now.used};
  return NVML_SUCCESS;
}

// All zero if the GPU does not protect its memory.
FENCE_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device,
                                                                       nvmlMemory_t* memory) {
  const auto real = FENCE_REAL(nvmlDeviceGetConfComputeProtectedMemoryUsage);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const nvmlReturn_t result = real(device, memory);
  if (result != NVML_SUCCESS || memory == nullptr || memory->total == 0) return result;
  return narrow_memory(device, *memory);
}
