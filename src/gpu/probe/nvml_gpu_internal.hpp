// SPDX-License-Identifier: Apache-2.0
// The parts of reading one GPU from NVML, each filling its own members and leaving the rest alone.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/probe/health.hpp"
#include "gpu/probe/nvml_asking.hpp"

#include <vector>

namespace gantry::probe {

void read_identity(Asking& asking, model::Gpu& gpu);
void read_memory(Asking& asking, model::Gpu& gpu);
void read_condition(Asking& asking, model::Telemetry& telemetry);  // temperature, memory errors
void read_load(Asking& asking, model::Telemetry& telemetry);       // power, utilisation
HealthFacts read_health_facts(Asking& asking);
void read_mig(Asking& asking, model::Gpu& gpu);  // after read_memory
void read_processes(Asking& asking, model::Gpu& gpu);

// What one GPU's NVLinks lead to.
struct NvLinks {
  int to_switch = 0;
  std::vector<model::PciAddress> to_devices;  // one entry per active link
};
NvLinks read_nvlinks(Asking& asking);

}  // namespace gantry::probe
