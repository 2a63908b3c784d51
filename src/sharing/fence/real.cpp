// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/fence.h"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/libc.hpp"

#include <sched.h>
#include <string.h>

namespace gantry::fence {
namespace {

// The names in the order of the members, in one string, so that there are no pointers to relocate.
constexpr char kNames[] =
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) #symbol "\0"
#define CUDA_ENTRY_PTSZ(symbol, name, since, parameters, arguments) #symbol "\0" #symbol "_ptsz\0"
#define CUDA_ENTRY_PTDS(symbol, name, since, parameters, arguments) #symbol "\0" #symbol "_ptds\0"
#include "gpu/abi/cuda_entries.def"
#define FENCE_ENTRY(symbol, parameters) #symbol "\0"
#include "sharing/fence/entries.def"
    ;

using Function = CUresult (*)();
static_assert(sizeof(RealDriver) % sizeof(Function) == 0);
constexpr size_t kCount = sizeof(RealDriver) / sizeof(Function);

CUresult missing() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

namespace detail {

constinit RealState real_state{};

// Holds no lock during calls of the dynamic linker: a thread may come here from a constructor, with
// the linker's own lock. Several threads may look up the functions; the first to finish writes
// them.
void resolve_real() {
  Function found[kCount];
  void* library = dlopen(FENCE_REAL_CUDA, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(FENCE_REAL_CUDA, RTLD_LAZY | RTLD_LOCAL);
  const char* name = kNames;
  for (Function& function : found) {
    void* address = library == nullptr ? nullptr : dlsym(library, name);
    function = address == nullptr ? &missing : reinterpret_cast<Function>(address);
    name += strlen(name) + 1;
  }
  int untouched = 0;
  if (__atomic_compare_exchange_n(&real_state.ready, &untouched, 1, false, __ATOMIC_ACQUIRE,
                                  __ATOMIC_ACQUIRE)) {
    memcpy(&real_state.entry, found, sizeof found);
    __atomic_store_n(&real_state.ready, 2, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&real_state.ready, __ATOMIC_ACQUIRE) != 2) sched_yield();
}

}  // namespace detail
}  // namespace gantry::fence
