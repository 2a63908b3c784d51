// SPDX-License-Identifier: Apache-2.0
// Asking NVML for readings, in the child.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/nvml.hpp"
#include "gpu/model/readings.hpp"
#include "gpu/nvml_child/nvml_child.hpp"
#include "gpu/probe/device_query.hpp"

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

model::GpuReading read_gpu(const driver::Nvml& nvml, const Device& device, ReadingDepth depth,
                           std::int64_t now_unix_ms);

// Parts of it.
void read_fields(probe::DeviceQuery& query, ReadingDepth depth, model::GpuReading& reading);
void read_activity(probe::DeviceQuery& query, std::int64_t now_unix_ms, model::GpuReading& reading);
void read_instances(probe::DeviceQuery& query, model::GpuReading& reading);
void read_processes(probe::DeviceQuery& query, model::GpuReading& reading);
// How busy each of them is: by its newest sample after that moment.
void read_process_utilization(probe::DeviceQuery& query, std::int64_t since_unix_ms,
                              model::GpuReading& reading);

// Pod and container of every process.
void add_owners(const sys::Host& host, model::Readings& readings);

}  // namespace gantry::nvml_child
