// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/engine/facts.hpp"

#include <algorithm>

namespace gantry::doctor {

inline bool any_gpu(const Facts& f, bool (*test)(const model::Gpu&)) {
  const auto& gpus = f.inventory().gpus;
  return std::any_of(gpus.begin(), gpus.end(), test);
}

// Some GPUs of this machine reach each other through an NVSwitch.
inline bool on_nvswitch(const Facts& f) {
  for (const auto& row : f.inventory().links) {
    for (const auto& link : row) {
      if (link.nvswitch) return true;
    }
  }
  return false;
}

}  // namespace gantry::doctor
