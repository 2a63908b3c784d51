// SPDX-License-Identifier: Apache-2.0
// How much of a card's time processes have had, as the simulated libcuda accounts it.

#include "sim/driver/gpu_time.h"
#include "sim/libnvidia-ml/usage_internal.hpp"

#include <limits.h>

namespace gantry::sim::nvml {
namespace {

struct TimeFile {
  Lock lock;
  gantry_sim_time* time = nullptr;
};
constinit TimeFile time_file{};

gantry_sim_time* time_of_machine() {
  const Guard guard(time_file.lock);
  char file[PATH_MAX];
  if (time_file.time == nullptr && find_libcuda(file, sizeof file))
    time_file.time = gantry_sim_time_open(file, GANTRY_SIM_TIME_READ);
  return time_file.time;
}

unsigned int percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return 0;
  const uint64_t found = (part * 100 + whole / 2) / whole;
  return found > 100 ? 100 : static_cast<unsigned int>(found);
}

}  // namespace

ProcessLoad::ProcessLoad(const Target& target, uint64_t window_ns) : gpu_(target.gpu) {
  size_ = gantry_sim_time_list(time_of_machine(), window_ns, rows_, kMaxRows);
  if (size_ > kMaxRows) size_ = kMaxRows;
}

unsigned int ProcessLoad::of_process(int32_t pid) const {
  unsigned int sum = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (rows_[i].gpu == gpu_ && rows_[i].pid == pid)
      sum += percent(rows_[i].window_busy_ns, rows_[i].window_ns);
  }
  return sum > 100 ? 100 : sum;
}

unsigned int ProcessLoad::of_card() const {
  unsigned int sum = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (rows_[i].gpu == gpu_) sum += percent(rows_[i].window_busy_ns, rows_[i].window_ns);
  }
  return sum > 100 ? 100 : sum;
}

}  // namespace gantry::sim::nvml
