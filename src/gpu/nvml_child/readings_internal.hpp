// SPDX-License-Identifier: Apache-2.0
// Asking NVML for readings, in the child.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/nvml.hpp"
#include "gpu/model/readings.hpp"
#include "gpu/nvml_child/sensor.hpp"
#include "gpu/probe/nvml_asking.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::nvml_child {

struct Device {
  nvmlDevice_t handle = nullptr;  // null: NVML refuses it
  std::string uuid;
  std::string refused;  // why
};

struct Devices {
  std::vector<Device> list;
  std::string error;  // why NVML cannot even count them
};
Devices find_devices(const driver::Nvml& nvml);

model::GpuReading read_gpu(const driver::Nvml& nvml, const Device& device, Depth depth,
                           std::int64_t now_unix_ms);

// Parts of it.
void read_fields(probe::Asking& asking, Depth depth, model::GpuReading& reading);
void read_activity(probe::Asking& asking, std::int64_t now_unix_ms, model::GpuReading& reading);
void read_instances(probe::Asking& asking, model::GpuReading& reading);
void read_processes(probe::Asking& asking, model::GpuReading& reading);
// How busy each of them is: by its newest sample after that moment.
void read_process_utilization(probe::Asking& asking, std::int64_t since_unix_ms,
                              model::GpuReading& reading);

// Pod and container of every process.
void add_owners(const sys::Host& host, model::Readings& readings);

}  // namespace gantry::nvml_child
