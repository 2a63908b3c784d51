// SPDX-License-Identifier: Apache-2.0
// Hooks of virtual memory management. Memory from cuMemCreate exists until it has been released as
// often as it was retained and is no longer mapped. Memory that another process exported is charged
// to that process; memory on the host is not charged.
#include "sharing/fence/vmm.hpp"

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/handle_table.hpp"
#include "sharing/fence/ledger.hpp"

namespace gantry::fence {
namespace {

struct Memory {
  Lock lock;             // both tables change together
  HandleTable made;      // by handle: Entry.count is handles, Entry.other mappings
  HandleTable mappings;  // by address: Entry.bytes is the length, Entry.other the handle
};
constinit Memory memory{};

// Called with the lock held.
void change(uint64_t handle, int handles, int mapped) {
  Entry now{};
  const bool known = memory.made.update(handle, [&](Entry& entry) {
    entry.count += static_cast<uint32_t>(handles);
    entry.other += static_cast<uint64_t>(static_cast<int64_t>(mapped));
    now = entry;
  });
  if (!known || now.count != 0 || now.other != 0) return;
  memory.made.take(handle, now);
  release_reserved(now.gpu, now.bytes);
}

// Called with the lock held.
void begin_giving(uint64_t handle, MemoryCall& underway) {
  Entry known{};
  if (memory.made.find(handle, known)) underway.begin(known.gpu);
}

}  // namespace

void reset_vmm_after_fork() {
  memory.lock.reset();
  memory.made.forget();
  memory.mappings.forget();
}

}  // namespace gantry::fence

using namespace gantry::fence;

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  const auto call = [&](CUmemGenericAllocationHandle* to) {
    return real().cuMemCreate(to, size, prop, flags);
  };
  if (!attached() || handle == nullptr || prop == nullptr || size == 0 ||
      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return call(handle);
  const uint32_t gpu = gpu_of(prop->location.id);
  const uint64_t charge = round_up(size, kGranule);
  if (gpu == kNoGpu && is_device(prop->location.id)) return CUDA_ERROR_OUT_OF_MEMORY;
  MemoryCall underway;
  if (!reserve(gpu, charge, underway)) return refused(gpu, charge);
  CUmemGenericAllocationHandle made = 0;
  CUresult result = call(&made);
  const Guard guard(memory.lock);
  if (result == CUDA_SUCCESS &&
      memory.made.put(
          {.key = made, .bytes = charge, .other = 0, .context = nullptr, .gpu = gpu, .count = 1})) {
    *handle = made;
    return result;
  }
  if (result == CUDA_SUCCESS) {
    real().cuMemRelease(made);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  release_reserved(gpu, charge);
  return result;
}

// Holds the lock during the driver's call, because the driver may reuse the handle afterwards.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!attached()) return real().cuMemRelease(handle);
  const Guard guard(memory.lock);
  MemoryCall underway;
  begin_giving(handle, underway);
  const CUresult result = real().cuMemRelease(handle);
  if (result == CUDA_SUCCESS) change(handle, -1, 0);
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  if (!attached()) return real().cuMemRetainAllocationHandle(handle, addr);
  const Guard guard(memory.lock);
  const CUresult result = real().cuMemRetainAllocationHandle(handle, addr);
  if (result == CUDA_SUCCESS && handle != nullptr) change(*handle, 1, 0);
  return result;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  if (!attached()) return real().cuMemMap(ptr, size, offset, handle, flags);
  const Guard guard(memory.lock);
  const CUresult result = real().cuMemMap(ptr, size, offset, handle, flags);
  Entry known{};
  if (result != CUDA_SUCCESS || !memory.made.find(handle, known)) return result;
  if (memory.mappings.put({.key = ptr,
                           .bytes = size,
                           .other = handle,
                           .context = nullptr,
                           .gpu = known.gpu,
                           .count = 0})) {
    change(handle, 0, 1);
    return result;
  }
  real().cuMemUnmap(ptr, size);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The range may hold many mappings.
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  if (!attached()) return real().cuMemUnmap(ptr, size);
  const Guard guard(memory.lock);
  Entry one{};
  MemoryCall underway;
  if (memory.mappings.find(ptr, one)) underway.begin(one.gpu);
  const CUresult result = real().cuMemUnmap(ptr, size);
  if (result != CUDA_SUCCESS) return result;
  if (memory.mappings.take(ptr, one)) {
    change(one.other, 0, -1);
    if (one.bytes >= size) return result;
  }
  memory.mappings.take_all(
      [ptr, size](const Entry& entry) { return entry.key - ptr < size && entry.key >= ptr; },
      [](const Entry& entry) { change(entry.other, 0, -1); });
  return result;
}
