// SPDX-License-Identifier: Apache-2.0
// Event sets: `gantry sim inject` writes events into the image's ring and wakes those who wait.

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct nvmlEventSet_st {
  int32_t used;
  unsigned long long types[GANTRY_SIM_MAX_GPUS];  // registered
  uint64_t from[GANTRY_SIM_MAX_GPUS];  // events up to this one are older than the registration
  uint64_t seen;
};

namespace gantry::sim::nvml {
namespace {

constexpr unsigned int kSets = 256;
constexpr uint64_t kNapUs = 1'000'000;  // a writer without access to our memory cannot wake us

struct Sets {
  Lock lock;
  nvmlEventSet_st set[kSets] = {};
};
constinit Sets sets{};

bool is_set(nvmlEventSet_t set) {
  const auto at = reinterpret_cast<uintptr_t>(set);
  const auto begin = reinterpret_cast<uintptr_t>(&sets.set[0]);
  if (at < begin || at >= begin + sizeof sets.set || (at - begin) % sizeof *set != 0) return false;
  return set->used != 0;
}

unsigned long long type_of(const gantry_sim_event& event) {
  constexpr unsigned long long kTypes[] = {nvmlEventTypeXidCriticalError,
                                           nvmlEventTypeSingleBitEccError,
                                           nvmlEventTypeDoubleBitEccError,
                                           nvmlEventMigConfigChange,
                                           nvmlEventTypePState,
                                           nvmlEventTypeClock,
                                           nvmlEventTypePowerSourceChange};
  return event.type < sizeof kTypes / sizeof kTypes[0] ? kTypes[event.type] : 0;
}

uint64_t newest_event() {
  uint64_t newest = 0;
  read_state(state(), &state().event_sequence, &newest, sizeof newest);
  return newest;
}

// The next event for this set. Events that the ring has overwritten are lost, as in the driver.
bool next_event(nvmlEventSet_st& set, gantry_sim_event& out) {
  const uint64_t newest = newest_event();
  if (newest > set.seen + GANTRY_SIM_MAX_EVENTS) set.seen = newest - GANTRY_SIM_MAX_EVENTS;
  while (set.seen < newest) {
    const uint64_t wanted = ++set.seen;
    read_state(state(), &state().event[wanted % GANTRY_SIM_MAX_EVENTS], &out, sizeof out);
    if (out.sequence != wanted || out.gpu >= GANTRY_SIM_MAX_GPUS) continue;
    if ((set.types[out.gpu] & type_of(out)) != 0 && wanted > set.from[out.gpu]) return true;
  }
  return false;
}

void nap(uint32_t sequence, uint64_t left_us) {
  const uint64_t us = left_us < kNapUs ? left_us : kNapUs;
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(us / 1'000'000);
  timeout.tv_nsec = static_cast<long>(us % 1'000'000 * 1000);
  // A shared futex, because the word is in a file that another process writes.
  syscall(SYS_futex, &state().sequence, FUTEX_WAIT, sequence, &timeout, nullptr, 0);
}

nvmlReturn_t wait(nvmlEventSet_t set, gantry_sim_event& out, unsigned int timeout_ms) {
  const uint64_t end = now_us() + uint64_t{timeout_ms} * 1000;
  for (;;) {
    const uint32_t sequence = __atomic_load_n(&state().sequence, __ATOMIC_ACQUIRE);
    {
      const Guard guard(sets.lock);
      if (!is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
      if (next_event(*set, out)) return NVML_SUCCESS;
    }
    if (session().users <= 0) return NVML_ERROR_UNINITIALIZED;
    const uint64_t now = now_us();
    if (now >= end) return NVML_ERROR_TIMEOUT;
    nap(sequence, end - now);
  }
}

unsigned long long supported_types(const gantry_sim_gpu& card) {
  unsigned long long types =
      nvmlEventTypePState | nvmlEventTypeXidCriticalError | nvmlEventTypeClock;
  if (card.ecc_supported != 0) {
    types |= nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError;
  }
  if (session().branch >= 430) types |= nvmlEventTypePowerSourceChange;
  if (session().branch >= 450 && card.mig_capable != 0) types |= nvmlEventMigConfigChange;
  if (session().branch >= 575 && card.nvml_architecture >= NVML_DEVICE_ARCH_HOPPER) types |= 0xFE00;
  return types;
}

}  // namespace

void drop_event_sets() {
  const Guard guard(sets.lock);
  for (auto& set : sets.set) set.used = 0;
}

}  // namespace gantry::sim::nvml

using namespace gantry::sim::nvml;

GANTRY_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  GANTRY_ENTER(nvmlEventSetCreate);
  GANTRY_NEED(set);
  const gantry::sim::Guard guard(sets.lock);
  for (auto& candidate : sets.set) {
    if (candidate.used != 0) continue;
    candidate = {};
    candidate.used = 1;
    candidate.seen = newest_event();
    *set = &candidate;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

GANTRY_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  GANTRY_ENTER(nvmlEventSetFree);
  const gantry::sim::Guard guard(sets.lock);
  if (!is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
  set->used = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device,
                                                            unsigned long long* types) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSupportedEventTypes, device);
  GANTRY_NEED(types);
  *types = supported_types(*target.card);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                                    nvmlEventSet_t set) {
  GANTRY_ENTER_GPU(nvmlDeviceRegisterEvents, device);
  if ((types & ~supported_types(*target.card)) != 0) return NVML_ERROR_NOT_SUPPORTED;
  const gantry::sim::Guard guard(sets.lock);
  if (!is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
  if (set->types[target.gpu] == 0) set->from[target.gpu] = newest_event();
  set->types[target.gpu] |= types;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, gantryEventDataV1_t* data,
                                            unsigned int timeout_ms) {
  GANTRY_ENTER(nvmlEventSetWait);
  GANTRY_NEED(data);
  gantry_sim_event event{};
  const nvmlReturn_t result = wait(set, event, timeout_ms);
  if (result == NVML_SUCCESS) *data = {gpu_handle(event.gpu), type_of(event), event.data};
  return result;
}

GANTRY_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data,
                                               unsigned int timeout_ms) {
  GANTRY_ENTER(nvmlEventSetWait_v2);
  GANTRY_NEED(data);
  gantry_sim_event event{};
  const nvmlReturn_t result = wait(set, event, timeout_ms);
  if (result == NVML_SUCCESS) {
    *data = {gpu_handle(event.gpu), type_of(event), event.data,
             static_cast<unsigned int>(event.gi_id), static_cast<unsigned int>(event.ci_id)};
  }
  return result;
}
