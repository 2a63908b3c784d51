// SPDX-License-Identifier: Apache-2.0
// NVML in a child process of its own.
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
  // `load` finds and loads the library; it runs in the child, too.
  using Load = std::function<Result<driver::Nvml>()>;
  NvmlProbe(const Load& load, const NvmlParts& parts, std::chrono::milliseconds deadline);

  // read_nvml_view's value; driver.nvml_error says it when the child hung, crashed or answered
  // nonsense.
  model::Inventory join();

 private:
  std::chrono::milliseconds deadline_;
  Result<sys::Child> child_;
};

}  // namespace gantry::probe
