// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/small_allocations.hpp"

#include "gpu/abi/fence.h"
#include "sharing/fence/handle_table.hpp"
#include "sharing/fence/ledger.hpp"

namespace gantry::fence {
namespace {

constexpr uint64_t kUnit = 512;

// By number: Entry.count is the number of parts, Entry.bytes their size.
constinit HandleTable granules{};
constinit Lock allocating{};
constinit Lock entering{};
constinit uint64_t left_in_last[FENCE_MAX_GPUS] = {};

void note_left(uint32_t gpu, uint64_t used) {
  if (gpu < FENCE_MAX_GPUS)
    __atomic_store_n(&left_in_last[gpu], used < kGranule ? kGranule - used : 0, __ATOMIC_RELAXED);
}

}  // namespace

bool fits_last_granule(uint32_t gpu, uint64_t bytes) {
  return gpu < FENCE_MAX_GPUS &&
         round_up(bytes, kUnit) <= __atomic_load_n(&left_in_last[gpu], __ATOMIC_RELAXED);
}

bool fits_any_granule(uint32_t gpu, uint64_t bytes) {
  bool found = false;
  granules.each([&](const Entry& entry) {
    found = found || (entry.gpu == gpu && entry.bytes + round_up(bytes, kUnit) <= kGranule);
  });
  return found;
}

Lock& small_allocation_lock() {
  return allocating;
}

Granule enter_granule(uint64_t address, uint32_t gpu, uint64_t bytes, uint64_t& granule) {
  granule = address / kGranule;
  const uint64_t taken = round_up(bytes, kUnit);
  const Guard guard(entering);
  const bool known = granules.update(granule, [&](Entry& entry) {
    ++entry.count;
    entry.bytes += taken;
    note_left(gpu, entry.bytes);
  });
  if (known) return Granule::Known;
  if (!granules.put(
          {.key = granule, .bytes = taken, .other = 0, .context = nullptr, .gpu = gpu, .count = 1}))
    return Granule::OutOfMemory;
  note_left(gpu, taken);
  return Granule::New;
}

void drop_granule(uint64_t granule) {
  const Guard guard(entering);
  Entry entry{};
  if (granules.take(granule, entry)) note_left(entry.gpu, kGranule);
}

void leave_granule(uint64_t granule, uint64_t bytes) {
  const uint64_t taken = round_up(bytes, kUnit);
  const Guard guard(entering);
  bool last = false;
  granules.update(granule, [&](Entry& entry) {
    last = --entry.count == 0;
    entry.bytes -= taken < entry.bytes ? taken : entry.bytes;
    note_left(entry.gpu, last ? kGranule : entry.bytes);
  });
  Entry entry{};
  if (last && granules.take(granule, entry)) release_reserved(entry.gpu, kGranule);
}

void reset_granules_after_fork() {
  granules.forget();
  allocating.reset();
  entering.reset();
  for (uint64_t& left : left_in_last) left = 0;
}

}  // namespace gantry::fence
