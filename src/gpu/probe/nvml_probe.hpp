// SPDX-License-Identifier: Apache-2.0
// Queries NVML in a separate process, gantry-nvml.
#pragma once

#include "base/sys/child.hpp"
#include "base/sys/host.hpp"
#include "gpu/probe/nvml_view.hpp"
#include "gpu/probe/snapshot.hpp"

#include <chrono>

namespace gantry::probe {

class NvmlProbe {
 public:
  NvmlProbe(const sys::Host& host, const SnapshotOptions& options);

  // The findings of the process. If it did not start, `failure` is NVML_ERROR_LIBRARY_NOT_FOUND; if
  // it hung, NVML_ERROR_TIMEOUT; if it crashed or sent an invalid answer, NVML_ERROR_UNKNOWN.
  NvmlView join();

 private:
  std::chrono::milliseconds deadline_;
  Result<sys::Child> child_;
};

}  // namespace gantry::probe
