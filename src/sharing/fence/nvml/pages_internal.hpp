// SPDX-License-Identifier: Apache-2.0
// The share's pages, as an observer has them.
#pragma once

#include "gpu/abi/fence.h"

namespace gantry::fence::nvml {

struct Pages {
  const FenceLimits* limits = nullptr;
  const FenceUsage* usage = nullptr;
  uint32_t gpu_count = 0;
  bool fenced = false;  // there is a share, whether or not its pages could be had
};

// Attaches at the first use, and again when the keeper is gone, at most once a second; meanwhile
// the last known pages stand. Mappings are never taken away: another thread may be reading them.
Pages share_pages();

}  // namespace gantry::fence::nvml
