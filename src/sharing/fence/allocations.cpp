// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/allocations.hpp"

#include "sharing/fence/driver.hpp"
#include "sharing/fence/handle_table.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/small_allocations.hpp"

namespace gantry::fence {
namespace {

// Entry.bytes is the charge. For small allocations Entry.other is the granule and Entry.count the
// size; for the others Entry.count is 1 for managed memory.
constinit HandleTable allocations{};

void end(const Entry& entry) {
  if (entry.other != 0) {
    leave_granule(entry.other, entry.count);
  } else if (entry.count != 0) {
    release_managed(entry.gpu, entry.bytes);
  } else {
    release_reserved(entry.gpu, entry.bytes);
  }
}

}  // namespace

CUcontext current_context() {
  CUcontext context = nullptr;
  return real().cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

bool add_allocation(uint64_t key, uint32_t gpu, uint64_t charge) {
  return allocations.put({.key = key,
                          .bytes = charge,
                          .other = 0,
                          .context = current_context(),
                          .gpu = gpu,
                          .count = 0});
}

bool add_managed_allocation(uint64_t key, uint32_t gpu, uint64_t charge) {
  note_managed(gpu, charge);
  if (allocations.put({.key = key,
                       .bytes = charge,
                       .other = 0,
                       .context = current_context(),
                       .gpu = gpu,
                       .count = 1}))
    return true;
  release_managed(gpu, charge);
  charge_unconditionally(gpu, charge);  // the caller releases it
  return false;
}

void grow_allocation(uint64_t key, uint64_t charge) {
  allocations.update(key, [charge](Entry& entry) { entry.bytes += charge; });
}

bool add_small_allocation(uint64_t key, uint32_t gpu, uint64_t granule, uint32_t size) {
  return allocations.put({.key = key,
                          .bytes = 0,
                          .other = granule,
                          .context = current_context(),
                          .gpu = gpu,
                          .count = size});
}

PendingFree::PendingFree(uint64_t key) : key_(key), known_(false) {
  Entry entry{};
  if (key == 0 || !allocations.take(key, entry)) return;
  charge_ = entry.bytes;
  granule_ = entry.other;
  context_ = entry.context;
  gpu_ = entry.gpu;
  size_ = entry.count;
  known_ = true;
  call_.begin(gpu_);
}

CUresult PendingFree::done(CUresult result) {
  if (!known_) return result;
  const Entry entry{.key = key_,
                    .bytes = charge_,
                    .other = granule_,
                    .context = context_,
                    .gpu = gpu_,
                    .count = size_};
  if (result == CUDA_SUCCESS) {
    end(entry);
  } else {
    allocations.put(entry);
  }
  return result;
}

void drop_allocations_of(CUcontext context) {
  if (context == nullptr) return;
  allocations.take_all([context](const Entry& entry) { return entry.context == context; }, end);
}

void reset_allocations_after_fork() {
  allocations.forget();
  reset_granules_after_fork();
}

}  // namespace gantry::fence
