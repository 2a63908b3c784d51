// SPDX-License-Identifier: Apache-2.0
// Hooks of plain, pitched and managed memory.
#include "sharing/fence/allocations.hpp"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/pools.hpp"
#include "sharing/fence/small_allocations.hpp"

namespace gantry::fence {
namespace {

constexpr uint64_t kPitch = 512;

// The share has not enough left. Without a context the driver returns another error.
template <class Call>
CUresult no_room(uint32_t gpu, uint64_t bytes, Call call) {
  CUdeviceptr nowhere = 0;
  return current_context() == nullptr ? call(nowhere) : refused(gpu, bytes);
}

// The driver allocated something that must be given back.
CUresult undo(CUdeviceptr pointer, uint32_t gpu, uint64_t bytes) {
  real().cuMemFree_v2(pointer);
  return refused(gpu, bytes);
}

// A whole number of granules.
template <class Call>
CUresult allocate_large(uint32_t gpu, uint64_t bytes, CUdeviceptr& made, Call call,
                        bool (*keep)(uint64_t, uint32_t, uint64_t) = add_allocation) {
  const uint64_t charge = round_up(bytes, kGranule);
  MemoryCall underway;
  if (!reserve(gpu, charge, underway)) return no_room(gpu, charge, call);
  CUresult result = call(made);
  if (result == CUDA_SUCCESS && keep(made, gpu, charge)) return result;
  if (result == CUDA_SUCCESS) result = undo(made, gpu, charge);
  release_reserved(gpu, charge);
  return result;
}

// The part is in a granule that may not be charged yet. If it cannot be charged, the part is freed.
bool keep_small(uint32_t gpu, uint64_t bytes, CUdeviceptr made, bool reserved) {
  uint64_t granule = 0;
  const Granule where = enter_granule(made, gpu, bytes, granule);
  if (where != Granule::New && reserved) release_reserved(gpu, kGranule);
  const bool paid =
      where == Granule::Known || (where == Granule::New && (reserved || reserve(gpu, kGranule)));
  if (paid && add_small_allocation(made, gpu, granule, static_cast<uint32_t>(bytes))) return true;
  real().cuMemFree_v2(made);
  if (paid) leave_granule(granule, bytes);
  if (!paid && where == Granule::New) drop_granule(granule);
  return false;
}

// Reserves a granule before the call, unless the current granule has room: then the driver will
// hardly allocate another. If the share has no room for another granule, an old one may still have
// room. Only one allocation at a time, so that no other uses a granule that cannot be charged.
template <class Call>
CUresult allocate_small(uint32_t gpu, uint64_t bytes, CUdeviceptr& made, Call call) {
  const Guard alone(small_allocation_lock());
  MemoryCall underway;
  bool reserved = false;
  if (!fits_last_granule(gpu, bytes)) {
    reserved = reserve(gpu, kGranule, underway);
    if (!reserved && !fits_any_granule(gpu, bytes)) return no_room(gpu, kGranule, call);
  }
  underway.begin(gpu);
  const CUresult result = call(made);
  if (result == CUDA_SUCCESS)
    return keep_small(gpu, bytes, made, reserved) ? result : refused(gpu, kGranule);
  if (reserved) release_reserved(gpu, kGranule);
  return result;
}

template <class Call>
CUresult allocate(uint64_t bytes, CUdeviceptr& made, Call call) {
  const uint32_t gpu = current_gpu();
  return bytes <= kMaxSmallBytes ? allocate_small(gpu, bytes, made, call)
                                 : allocate_large(gpu, bytes, made, call);
}

// The length of a row is known only afterwards; the guess is what all GPUs do today.
template <class Call, class Pitch>
CUresult allocate_pitched(uint64_t width, uint64_t height, CUdeviceptr& made, const Pitch& pitch,
                          Call call) {
  const uint64_t row_bytes = round_up(width, kPitch);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(row_bytes, height, &bytes)) bytes = UINT64_MAX;
  const CUresult result = allocate(bytes, made, call);
  if (result != CUDA_SUCCESS || pitch <= row_bytes || bytes <= kMaxSmallBytes) return result;
  const uint32_t gpu = current_gpu();
  const uint64_t more = round_up(pitch * height, kGranule) - round_up(bytes, kGranule);
  if (reserve(gpu, more)) {
    grow_allocation(made, more);
    return result;
  }
  PendingFree leaving(made);
  leaving.done(real().cuMemFree_v2(made));
  return refused(gpu, more);
}

template <class Call>
CUresult free_memory(CUdeviceptr pointer, Call call) {
  if (!attached()) return call();
  PendingFree leaving(pointer);
  const CUresult result = leaving.done(call());
  if (result == CUDA_SUCCESS) pools_synced();  // it waits for the device, like a synchronisation
  return result;
}

}  // namespace
}  // namespace gantry::fence

using namespace gantry::fence;

// The program's variables are written only when the allocation may be kept.

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  if (!attached() || pointer == nullptr || bytes == 0) return real().cuMemAlloc_v2(pointer, bytes);
  CUdeviceptr made = 0;
  const CUresult result =
      allocate(bytes, made, [bytes](CUdeviceptr& to) { return real().cuMemAlloc_v2(&to, bytes); });
  if (result == CUDA_SUCCESS) *pointer = made;
  return result;
}
CUresult cuMemAlloc(CUdeviceptr_v1* pointer, unsigned int bytes) {
  if (!attached() || pointer == nullptr || bytes == 0) return real().cuMemAlloc(pointer, bytes);
  CUdeviceptr made = 0;
  const CUresult result = allocate(bytes, made, [bytes](CUdeviceptr& to) {
    CUdeviceptr_v1 narrow = 0;
    const CUresult said = real().cuMemAlloc(&narrow, bytes);
    to = narrow;
    return said;
  });
  if (result == CUDA_SUCCESS) *pointer = static_cast<CUdeviceptr_v1>(made);
  return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width_in_bytes,
                            size_t height, unsigned int element_size_bytes) {
  if (!attached() || pointer == nullptr || pitch == nullptr || width_in_bytes == 0 || height == 0)
    return real().cuMemAllocPitch_v2(pointer, pitch, width_in_bytes, height, element_size_bytes);
  CUdeviceptr made = 0;
  size_t row_bytes = 0;
  const CUresult result =
      allocate_pitched(width_in_bytes, height, made, row_bytes, [&](CUdeviceptr& to) {
        return real().cuMemAllocPitch_v2(&to, &row_bytes, width_in_bytes, height,
                                         element_size_bytes);
      });
  if (result != CUDA_SUCCESS) return result;
  *pointer = made;
  *pitch = row_bytes;
  return result;
}
CUresult cuMemAllocPitch(CUdeviceptr_v1* pointer, unsigned int* pitch, unsigned int width_in_bytes,
                         unsigned int height, unsigned int element_size_bytes) {
  if (!attached() || pointer == nullptr || pitch == nullptr || width_in_bytes == 0 || height == 0)
    return real().cuMemAllocPitch(pointer, pitch, width_in_bytes, height, element_size_bytes);
  CUdeviceptr made = 0;
  unsigned int row_bytes = 0;
  const CUresult result =
      allocate_pitched(width_in_bytes, height, made, row_bytes, [&](CUdeviceptr& to) {
        CUdeviceptr_v1 narrow = 0;
        const CUresult said =
            real().cuMemAllocPitch(&narrow, &row_bytes, width_in_bytes, height, element_size_bytes);
        to = narrow;
        return said;
      });
  if (result != CUDA_SUCCESS) return result;
  *pointer = static_cast<CUdeviceptr_v1>(made);
  *pitch = row_bytes;
  return result;
}

// Counted in full, because all of it may move to the GPU.
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  if (!attached() || pointer == nullptr || bytes == 0)
    return real().cuMemAllocManaged(pointer, bytes, flags);
  CUdeviceptr made = 0;
  const CUresult result = allocate_large(
      current_gpu(), bytes, made,
      [bytes, flags](CUdeviceptr& to) { return real().cuMemAllocManaged(&to, bytes, flags); },
      add_managed_allocation);
  if (result == CUDA_SUCCESS) *pointer = made;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return free_memory(pointer, [&] { return real().cuMemFree_v2(pointer); });
}
CUresult cuMemFree(CUdeviceptr_v1 pointer) {
  return free_memory(pointer, [&] { return real().cuMemFree(pointer); });
}
