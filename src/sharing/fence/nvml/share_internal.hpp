// SPDX-License-Identifier: Apache-2.0
// The share on one GPU, read from its pages: how much is used, and by which processes.
#pragma once

#include "gpu/abi/fence.h"
#include "gpu/abi/nvml.h"

#include <stdint.h>

namespace gantry::fence::nvml {

enum class Membership {
  NotInShare,  // no share, or a device outside of it: pass the driver's answer on
  Member,      // a GPU of the share
  Unknown,     // the share's size is unknown: do not pass the driver's answer on
};

// One process of the share that uses the GPU.
struct Member {
  uint32_t host_pid;
  uint32_t pid;  // in the reader's pid namespace
  uint64_t bytes;
};

class Share {
 public:
  // Finds the share's GPU for a handle, by UUID.
  explicit Share(nvmlDevice_t device);
  Membership standing() const { return standing_; }
  // The hooks return this if the membership is Unknown.
  static constexpr nvmlReturn_t kUnknown = NVML_ERROR_NOT_READY;

  bool limits_memory() const;
  uint64_t limit() const;
  // The memory that counts against the limit, capped at the limit.
  uint64_t used() const;

  uint32_t slots() const;
  // False if the slot is free or its process does not use this GPU.
  bool member(uint32_t slot, Member& out) const;
  // Translates the pid to the reader's namespace; false for processes outside of the share.
  // Depending on driver and namespace, NVML gives the host's pids or the reader's.
  bool own(unsigned int pid_from_driver, unsigned int& shown) const;
  // The host's pid of the process that has `pid` in the reader's namespace; 0 if it is not in the
  // share.
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
