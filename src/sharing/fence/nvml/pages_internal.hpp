// SPDX-License-Identifier: Apache-2.0
// The share's pages, as an observer sees them.
#pragma once

#include "gpu/abi/fence.h"

namespace gantry::fence::nvml {

struct Pages {
  const FenceLimits* limits = nullptr;
  const FenceUsage* usage = nullptr;
  uint32_t gpu_count = 0;
  bool fenced = false;  // there is a share, even if its pages could not be mapped
};

// Attaches at the first use, and again if the daemon is gone, at most once a second. Until then the
// last known pages are used. Mappings are never removed, because another thread may be reading
// them.
Pages share_pages();

}  // namespace gantry::fence::nvml
