// SPDX-License-Identifier: Apache-2.0
// The share as its pages have it, for one GPU: how much is used, and by whom.
#pragma once

#include "gpu/abi/fence.h"
#include "gpu/abi/nvml.h"

#include <stdint.h>

namespace gantry::fence::nvml {

enum class Membership {
  NotInShare,  // no share here, or a device that is not in it: the driver's answer stands
  Member,      // a GPU of the share
  Unknown,  // there is a share, and nobody says how large: the driver's answer must not pass for it
};

// One process of the share that is on the GPU.
struct Member {
  uint32_t host_pid;
  uint32_t pid;  // as the reader sees it
  uint64_t bytes;
};

class Share {
 public:
  // Finds the GPU behind a handle among those of the share, by UUID.
  explicit Share(nvmlDevice_t device);
  Membership standing() const { return standing_; }
  // What the hooks return where the standing is Unknown.
  static constexpr nvmlReturn_t kUnknown = NVML_ERROR_NOT_READY;

  bool limits_memory() const;
  uint64_t limit() const;
  // What the share's ledger counts against the limit, and no more than it.
  uint64_t used() const;

  uint32_t slots() const;
  // False where the slot is free or its process is not on this GPU.
  bool member(uint32_t slot, Member& out) const;
  // The number the reader knows the process by; false for processes of others. NVML gives the
  // host's numbers or the reader's, by driver and namespace.
  bool own(unsigned int pid_from_driver, unsigned int& shown) const;
  // The host's number of the process the reader calls `pid`; 0 where it is not ours.
  uint32_t host_pid(unsigned int pid) const;

 private:
  const FenceGpuLimits& gpu() const { return limits_->gpu[gpu_]; }
  const FenceUsageRow& row(uint32_t slot) const;
  uint64_t uncounted_contexts(uint32_t slot) const;

  Membership standing_ = Membership::NotInShare;
  const FenceLimits* limits_ = nullptr;
  const FenceUsage* usage_ = nullptr;
  uint32_t gpu_ = 0;
};

}  // namespace gantry::fence::nvml
