// SPDX-License-Identifier: Apache-2.0
// Queries NVML in a separate child process.
#pragma once

#include "base/sys/child.hpp"
#include "gpu/driver/nvml.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/probe/nvml_view.hpp"

#include <chrono>
#include <functional>

namespace gantry::probe {

class NvmlProbe {
 public:
  // `load` finds and loads the library; it also runs in the child.
  using Load = std::function<Result<driver::Nvml>()>;
  NvmlProbe(const Load& load, const NvmlParts& parts, std::chrono::milliseconds deadline);

  // The result of read_nvml_view. If the child hung, `failure` is NVML_ERROR_TIMEOUT; if it crashed
  // or sent an invalid answer, NVML_ERROR_UNKNOWN.
  NvmlView join();

 private:
  std::chrono::milliseconds deadline_;
  Result<sys::Child> child_;
};

}  // namespace gantry::probe
