// SPDX-License-Identifier: Apache-2.0
// The driver's own functions behind the hooks.
#pragma once

#include "gpu/abi/nvml.h"

namespace gantry::fence::nvml {

enum class Entry : unsigned int {
#define FENCE_NVML_HOOK(name) name,
#include "sharing/fence/nvml/hooks.def"
#undef FENCE_NVML_HOOK
  nvmlDeviceGetUUID,  // NOLINT(readability-identifier-naming): the driver's own name, as above
  Count,
};

// nullptr if this driver has no such function.
void* real_entry(Entry entry, const char* name);

}  // namespace gantry::fence::nvml

// FENCE_REAL(nvmlDeviceGetMemoryInfo)(device, memory), after a check that it exists.
#define FENCE_REAL(name)               \
  reinterpret_cast<decltype(&::name)>( \
      gantry::fence::nvml::real_entry(gantry::fence::nvml::Entry::name, #name))

#define FENCE_EXPORT extern "C" __attribute__((visibility("default")))
