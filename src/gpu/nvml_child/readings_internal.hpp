// SPDX-License-Identifier: Apache-2.0
// Reads values from NVML, in the child.
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
  std::string error;  // why NVML cannot count the GPUs
};
Devices find_devices(const driver::Nvml& nvml);

model::GpuReading read_gpu(const driver::Nvml& nvml, const Device& device, ReadingDepth depth,
                           std::int64_t now_unix_ms);

// The parts of read_gpu.
void read_fields(probe::DeviceQuery& query, ReadingDepth depth, model::GpuReading& reading);
void read_activity(probe::DeviceQuery& query, std::int64_t now_unix_ms, model::GpuReading& reading);
void read_instances(probe::DeviceQuery& query, model::GpuReading& reading);
void read_processes(probe::DeviceQuery& query, model::GpuReading& reading);
// The utilization of each process, from its newest sample after that time.
void read_process_utilization(probe::DeviceQuery& query, std::int64_t since_unix_ms,
                              model::GpuReading& reading);

// Adds the pod and container of every process.
void add_owners(const sys::Host& host, model::Readings& readings);

}  // namespace gantry::nvml_child
