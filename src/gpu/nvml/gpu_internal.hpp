// SPDX-License-Identifier: Apache-2.0
// The parts of reading one GPU from NVML. Each fills only its own members.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/nvml/device_query.hpp"
#include "gpu/probe/gpu_health.hpp"

#include <vector>

namespace gantry::nvml {

void read_identity(DeviceQuery& query, model::Gpu& gpu);
void read_memory(DeviceQuery& query, model::Gpu& gpu);
void read_condition(DeviceQuery& query, model::Telemetry& telemetry);  // temperature, memory errors
void read_load(DeviceQuery& query, model::Telemetry& telemetry);       // power, utilisation
probe::HealthFacts read_health_facts(DeviceQuery& query);
void read_mig(DeviceQuery& query, model::Gpu& gpu);  // after read_memory
void read_processes(DeviceQuery& query, model::Gpu& gpu);

// The other ends of one GPU's NVLinks.
struct NvLinks {
  int to_switch = 0;
  std::vector<model::PciAddress> to_devices;  // one entry per active link
};
NvLinks read_nvlinks(DeviceQuery& query);

}  // namespace gantry::nvml
