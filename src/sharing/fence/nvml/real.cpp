// SPDX-License-Identifier: Apache-2.0
#include "gpu/abi/fence.h"
#include "sharing/fence/libc.hpp"
#include "sharing/fence/nvml/real_internal.hpp"

#include <stdint.h>

namespace gantry::fence::nvml {
namespace {

constexpr uintptr_t kMissing = 1;
constinit uintptr_t entries[static_cast<unsigned int>(Entry::Count)] = {};

}  // namespace

// No lock is needed: concurrent threads find the same.
void* real_entry(Entry entry, const char* name) {
  uintptr_t& place = entries[static_cast<unsigned int>(entry)];
  uintptr_t known = __atomic_load_n(&place, __ATOMIC_RELAXED);
  if (known == 0) {
    void* library = dlopen(FENCE_REAL_NVML, RTLD_LAZY | RTLD_NOLOAD);
    void* found = library == nullptr ? nullptr : dlsym(library, name);
    known = found == nullptr ? kMissing : reinterpret_cast<uintptr_t>(found);
    __atomic_store_n(&place, known, __ATOMIC_RELAXED);
  }
  return known == kMissing ? nullptr : reinterpret_cast<void*>(known);
}

}  // namespace gantry::fence::nvml
