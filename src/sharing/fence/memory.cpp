// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/memory.hpp"

#include "sharing/fence/driver.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/small.hpp"
#include "sharing/fence/table.hpp"

namespace gantry::fence {
namespace {

// Entry.bytes: the charge. Of small ones Entry.other is their granule and Entry.count their size;
// of the others Entry.count is 1 for managed memory.
constinit Table allocations{};

void end(const Entry& entry) {
  if (entry.other != 0) {
    leave_granule(entry.other, entry.count);
  } else if (entry.count != 0) {
    give_back_managed(entry.gpu, entry.bytes);
  } else {
    give_back(entry.gpu, entry.bytes);
  }
}

}  // namespace

CUcontext current_context() {
  CUcontext context = nullptr;
  return real().cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

bool remember(uint64_t key, uint32_t gpu, uint64_t charge) {
  return allocations.put({.key = key,
                          .bytes = charge,
                          .other = 0,
                          .context = current_context(),
                          .gpu = gpu,
                          .count = 0});
}

bool remember_managed(uint64_t key, uint32_t gpu, uint64_t charge) {
  note_managed(gpu, charge);
  if (allocations.put({.key = key,
                       .bytes = charge,
                       .other = 0,
                       .context = current_context(),
                       .gpu = gpu,
                       .count = 1}))
    return true;
  give_back_managed(gpu, charge);
  add_taken(gpu, charge);  // the caller gives it back
  return false;
}

void remember_more(uint64_t key, uint64_t charge) {
  allocations.update(key, [charge](Entry& entry) { entry.bytes += charge; });
}

bool remember_small(uint64_t key, uint32_t gpu, uint64_t granule, uint32_t size) {
  return allocations.put({.key = key,
                          .bytes = 0,
                          .other = granule,
                          .context = current_context(),
                          .gpu = gpu,
                          .count = size});
}

Leaving::Leaving(uint64_t key) : key_(key), known_(false) {
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

CUresult Leaving::done(CUresult result) {
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

void forget_memory_of(CUcontext context) {
  if (context == nullptr) return;
  allocations.take_all([context](const Entry& entry) { return entry.context == context; }, end);
}

void forget_memory() {
  allocations.forget();
  forget_granules();
}

}  // namespace gantry::fence
