// SPDX-License-Identifier: Apache-2.0
// Device memory held by processes, as the simulated libcuda accounts it.
#pragma once

#include "sim/driver/gpu_time.h"
#include "sim/driver/usage.h"
#include "sim/libnvidia-ml/nvml_internal.hpp"

namespace gantry::sim::nvml {

// Finds the libcuda file of the same driver, which anchors the accounting: in the directory of this
// library, or in the distribution's directory if the driver has another one.
bool find_libcuda(char* out, size_t size);

// The memory use of all processes on one GPU or MIG device. Small numbers stay on the stack.
class MemoryUses {
 public:
  explicit MemoryUses(const Target& target);
  ~MemoryUses();
  MemoryUses(const MemoryUses&) = delete;
  MemoryUses& operator=(const MemoryUses&) = delete;

  size_t size() const { return size_; }
  const gantry_sim_use* begin() const { return rows_; }
  const gantry_sim_use* end() const { return rows_ + size_; }

 private:
  gantry_sim_use few_[64] = {};
  gantry_sim_use* rows_ = few_;
  size_t size_ = 0;
};

// The recent share of each process in a card's time, in percent.
class ProcessLoad {
 public:
  static constexpr uint64_t kSecond = 1000000000;
  explicit ProcessLoad(const Target& target, uint64_t window_ns = kSecond);
  unsigned int of_process(int32_t pid) const;
  unsigned int of_card() const;

 private:
  static constexpr size_t kMaxRows = 256;
  uint32_t gpu_;
  size_t size_ = 0;
  gantry_sim_time_use rows_[kMaxRows] = {};
};

}  // namespace gantry::sim::nvml
