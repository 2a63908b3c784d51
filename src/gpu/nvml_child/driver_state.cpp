// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/driver_state_internal.hpp"
#include "gpu/probe/kernel_view.hpp"

namespace gantry::nvml_child {

DriverState read_driver_state(const sys::Host& host) {
  DriverState facts;
  const auto module = probe::read_driver_module(host);
  if (!module.loaded) {
    facts.why_not = module.why_not;
    return facts;
  }
  facts.version = module.version;
  facts.gpus = host.list("/proc/driver/nvidia/gpus").value_or({});
  return facts;
}

}  // namespace gantry::nvml_child
