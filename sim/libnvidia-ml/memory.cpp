// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/mig_internal.hpp"
#include "sim/libnvidia-ml/usage_internal.hpp"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gantry::sim::nvml {
namespace {

constexpr unsigned long long kMiB = 1024ULL * 1024ULL;
constexpr size_t kMostUses = 65536;

struct UsageFile {
  Lock lock;
  int32_t tried = 0;
  gantry_sim_usage* usage = nullptr;
};
constinit UsageFile usage_file{};

}  // namespace

bool find_libcuda(char* out, size_t size) {
  const char* own = gantry_sim_own_file();
  if (strcmp(own, kFencedNvml) == 0) {  // there libcuda's usual names point to the fence
    const int length = snprintf(out, size, "%s", kFencedCuda);
    return length > 0 && static_cast<size_t>(length) < size && access(out, R_OK) == 0;
  }
  const char* slash = strrchr(own, '/');
  if (slash == nullptr) return false;
  char beside[PATH_MAX];
  snprintf(beside, sizeof beside, "%.*s", static_cast<int>(slash - own), own);
  char usual[PATH_MAX];
  snprintf(usual, sizeof usual, "%s/usr/lib/x86_64-linux-gnu", gantry_sim_root());
  const char* const directories[] = {beside, usual};
  const char* const versions[] = {machine().driver_version, "1"};
  for (const char* directory : directories) {
    for (const char* version : versions) {
      const int length = snprintf(out, size, "%s/libcuda.so.%s", directory, version);
      if (length > 0 && static_cast<size_t>(length) < size && access(out, R_OK) == 0) return true;
    }
  }
  return false;
}

namespace {

gantry_sim_usage* usage() {
  if (__atomic_load_n(&usage_file.tried, __ATOMIC_ACQUIRE) == 0) {
    const Guard guard(usage_file.lock);
    if (usage_file.tried == 0) {
      char file[PATH_MAX];
      if (find_libcuda(file, sizeof file)) usage_file.usage = gantry_sim_usage_open(file);
      __atomic_store_n(&usage_file.tried, 1, __ATOMIC_RELEASE);
    }
  }
  return usage_file.usage;
}

// -1: the whole card.
int32_t gi_of(const Target& target) {
  return target.mig ? static_cast<int32_t>(target.gi_id) : -1;
}

uint64_t bytes_used(const Target& target) {
  return gantry_sim_usage_total(usage(), target.gpu, gi_of(target), -1);
}

}  // namespace

MemoryUses::MemoryUses(const Target& target) {
  auto* accounts = usage();
  if (accounts == nullptr) return;
  size_t capacity = sizeof few_ / sizeof few_[0];
  size_t all = gantry_sim_usage_list(accounts, target.gpu, rows_, capacity);
  if (all > capacity && all < kMostUses) {
    if (auto* more = static_cast<gantry_sim_use*>(malloc(all * sizeof *rows_)); more != nullptr) {
      rows_ = more;
      capacity = all;
      all = gantry_sim_usage_list(accounts, target.gpu, rows_, capacity);
    }
  }
  const size_t got = all < capacity ? all : capacity;
  for (size_t i = 0; i < got; ++i) {
    if (!target.mig || rows_[i].gi_id == gi_of(target)) rows_[size_++] = rows_[i];
  }
}

MemoryUses::~MemoryUses() {
  if (rows_ != few_) free(rows_);
}

}  // namespace gantry::sim::nvml

using namespace gantry::sim::nvml;

namespace {

struct Amounts {
  unsigned long long total, reserved, used;
};

// If it is not a whole number of MiB, a field of the card has the exact value: nvidia-smi rounds
// each number up, and free memory would be one MiB too small.
unsigned long long reserved_by_driver(const Target& target) {
  const char* bytes = gantry_sim_field(static_cast<int32_t>(target.gpu), "memory.reserved_bytes");
  return bytes[0] != '\0' ? strtoull(bytes, nullptr, 10) : target.card->memory_reserved_mib * kMiB;
}

// An instance has the part of BAR1 that its memory slices are of the card's, less one MiB.
bool bar1_of_instance(const Target& target, unsigned long long& mib) {
  MigDevice found{};
  if (!find_mig(target, found)) return false;
  unsigned long long slices = 1;
  for (uint32_t i = 0; i < target.card->mig_profile_count; ++i) {
    const unsigned long long some = target.card->mig_profile[i].memory_slices;
    if (some > slices) slices = some;
  }
  const unsigned long long part =
      mib * target.card->mig_profile[found.profile].memory_slices / slices;
  mib = part == 0 ? 0 : part - 1;
  return true;
}

nvmlReturn_t measure(nvmlDevice_t device, Amounts& out) {
  Target target{};
  if (const nvmlReturn_t result = resolve(device, target); result != NVML_SUCCESS) return result;
  if (target.mig) {
    MigDevice found{};
    if (!find_mig(target, found)) return NVML_ERROR_NOT_FOUND;
    out.total = target.card->mig_profile[found.profile].memory_mib * kMiB;
    out.reserved = 0;
  } else {
    out.total = target.card->memory_total_mib * kMiB;
    out.reserved = reserved_by_driver(target);
  }
  out.used = bytes_used(target);
  const unsigned long long room = out.total > out.reserved ? out.total - out.reserved : 0;
  if (out.used > room) out.used = room;
  return NVML_SUCCESS;
}

}  // namespace

// The first form has no field for the driver's reserve: it counts as used.
GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  GANTRY_ENTER(nvmlDeviceGetMemoryInfo);
  Amounts now{};
  if (const nvmlReturn_t result = measure(device, now); result != NVML_SUCCESS) return result;
  GANTRY_NEED(memory);
  const unsigned long long used = now.used + now.reserved;
  *memory = {now.total, now.total - used, used};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device,
                                                      nvmlMemory_v2_t* memory) {
  GANTRY_ENTER(nvmlDeviceGetMemoryInfo_v2);
  Amounts now{};
  if (const nvmlReturn_t result = measure(device, now); result != NVML_SUCCESS) return result;
  GANTRY_NEED(memory);
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  *memory = {nvmlMemory_v2, now.total, now.reserved, now.total - now.used - now.reserved, now.used};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device,
                                                       nvmlBAR1Memory_t* memory) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetBAR1MemoryInfo, device);
  GANTRY_NEED(memory);
  unsigned long long mib = target.card->bar1_mib;
  if (target.mig && !bar1_of_instance(target, mib)) return NVML_ERROR_NOT_FOUND;
  const unsigned long long total = mib * kMiB;
  const unsigned long long used = total == 0 || target.mig ? 0 : kMiB;
  *memory = {total, total - used, used};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
                                                               nvmlConfComputeMemSizeInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetConfComputeMemSizeInfo, device);
  GANTRY_NEED(info);
  if (target.card->nvml_architecture < NVML_DEVICE_ARCH_HOPPER) return NVML_ERROR_NOT_SUPPORTED;
  *info = {0, (target.card->memory_total_mib - target.card->memory_reserved_mib) * 1024ULL};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device,
                                                                        nvmlMemory_t* memory) {
  GANTRY_ENTER_GPU(nvmlDeviceGetConfComputeProtectedMemoryUsage, device);
  GANTRY_NEED(memory);
  if (target.card->nvml_architecture < NVML_DEVICE_ARCH_HOPPER) return NVML_ERROR_NOT_SUPPORTED;
  *memory = {};
  return NVML_SUCCESS;
}
