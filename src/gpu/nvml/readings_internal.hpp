// SPDX-License-Identifier: Apache-2.0
// Reads values from NVML, in the child.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/gpu_uuid.hpp"
#include "gpu/model/readings.hpp"
#include "gpu/nvml/device_query.hpp"
#include "gpu/nvml/nvml.hpp"
#include "gpu/nvml_child/nvml_child.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::nvml {

struct Device {
  nvmlDevice_t handle = nullptr;  // null: NVML refuses it
  model::GpuUuid uuid;
  std::string refused;  // why
};

struct Devices {
  std::vector<Device> list;
  std::string error;  // why NVML cannot count the GPUs
};
Devices find_devices(const Nvml& nvml);

model::GpuReading read_gpu(const Nvml& nvml, const Device& device, nvml_child::ReadingDepth depth,
                           std::int64_t now_unix_ms);

// The parts of read_gpu.
void read_fields(DeviceQuery& query, nvml_child::ReadingDepth depth, model::GpuReading& reading);
void read_activity(DeviceQuery& query, std::int64_t now_unix_ms, model::GpuReading& reading);
void read_instances(DeviceQuery& query, model::GpuReading& reading);
void read_processes(DeviceQuery& query, model::GpuReading& reading);
// The utilization of each process, from its newest sample after that time.
void read_process_utilization(DeviceQuery& query, std::int64_t since_unix_ms,
                              model::GpuReading& reading);

// Adds the pod and container of every process.
void add_owners(const sys::Host& host, model::Readings& readings);

}  // namespace gantry::nvml
