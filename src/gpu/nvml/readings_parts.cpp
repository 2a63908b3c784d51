// SPDX-License-Identifier: Apache-2.0
// The MIG instances and processes of one GPU.
#include "gpu/nvml/instance_id_internal.hpp"
#include "gpu/nvml/readings_internal.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace gantry::nvml {
namespace {

constexpr unsigned kMaxGpuProcesses = 4096;
constexpr unsigned kFirstGuess = 128;  // an H200 reports 72 with one process

bool read_instance_memory(DeviceQuery& query, unsigned index, model::InstanceReading& found) {
  nvmlDevice_t handle = nullptr;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMigDeviceHandleByIndex, query.device(), index, &handle))
    return false;
  std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetUUID, handle, uuid.data(),
                    static_cast<unsigned>(uuid.size())) ||
      !GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceId, handle, &gpu_instance) ||
      !GANTRY_QUERY(query, nvmlDeviceGetComputeInstanceId, handle, &compute_instance)) {
    return false;  // it was destroyed between two calls
  }
  found.uuid.text = to_string(uuid);
  found.gpu_instance = instance_of(gpu_instance).value_or(0);
  found.compute_instance = instance_of(compute_instance).value_or(0);
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  if (GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo_v2, handle, &memory)) {
    found.memory_total_bytes = memory.total;
    found.memory_used_bytes = memory.used;
    found.memory_free_bytes = memory.free;
    found.memory_reserved_bytes = memory.reserved;
  }
  return true;
}

// A process may be on the list twice, for compute and graphics: the memory is the same.
void add_process(std::vector<model::ProcessReading>& processes, const nvmlProcessInfo_t& info) {
  const auto instance = instance_of(info.gpuInstanceId);
  for (const auto& known : processes) {
    if (known.pid == info.pid && known.gpu_instance == instance) return;
  }
  auto& process = processes.emplace_back();
  process.pid = info.pid;
  if (info.usedGpuMemory != static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE))
    process.memory_bytes = info.usedGpuMemory;
  process.gpu_instance = instance;
  process.compute_instance = instance_of(info.computeInstanceId);
}

void add_without_instance(std::vector<model::ProcessReading>& processes,
                          const std::vector<nvmlProcessInfo_v1_t>& list) {
  for (const auto& old : list)
    add_process(processes, {old.pid, old.usedGpuMemory, kNoInstance, kNoInstance});
}

using Samples = std::vector<nvmlProcessUtilizationSample_t>;

// Each call takes the driver at least a millisecond, so we do not ask for the number first.
Samples samples_since(DeviceQuery& query, std::int64_t since_unix_ms) {
  const auto from = static_cast<unsigned long long>(since_unix_ms) * 1000;
  auto count = kFirstGuess;
  for (int attempt = 0; attempt < 2; ++attempt) {
    Samples samples(count);
    if (GANTRY_QUERY(query, nvmlDeviceGetProcessUtilization, query.device(), samples.data(), &count,
                     from)) {
      samples.resize(std::min<std::size_t>(count, samples.size()));
      return samples;
    }
    if (query.last() != NVML_ERROR_INSUFFICIENT_SIZE || count == 0 || count > kMaxGpuProcesses)
      return {};
  }
  return {};
}

}  // namespace

void read_instances(DeviceQuery& query, model::GpuReading& reading) {
  unsigned current = 0;
  unsigned pending = 0;
  unsigned count = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMigMode, query.device(), &current, &pending) ||
      current != NVML_DEVICE_MIG_ENABLE ||
      !GANTRY_QUERY(query, nvmlDeviceGetMaxMigDeviceCount, query.device(), &count)) {
    return;
  }
  for (unsigned i = 0; i < std::min(count, kMaxInstances); ++i) {
    model::InstanceReading found;
    if (read_instance_memory(query, i, found)) reading.instances.push_back(std::move(found));
  }
}

void read_processes(DeviceQuery& query, model::GpuReading& reading) {
  std::vector<nvmlProcessInfo_t> list;
  std::vector<nvmlProcessInfo_v1_t> old;
  if (GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses_v3, list) ||
      GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses_v2, list)) {
    for (const auto& info : list) add_process(reading.processes, info);
  } else if (GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses, old)) {
    add_without_instance(reading.processes, old);
  }
  if (GANTRY_QUERY_LIST(query, nvmlDeviceGetGraphicsRunningProcesses_v3, list) ||
      GANTRY_QUERY_LIST(query, nvmlDeviceGetGraphicsRunningProcesses_v2, list)) {
    for (const auto& info : list) add_process(reading.processes, info);
  } else if (GANTRY_QUERY_LIST(query, nvmlDeviceGetGraphicsRunningProcesses, old)) {
    add_without_instance(reading.processes, old);
  }
}

void read_process_utilization(DeviceQuery& query, std::int64_t since_unix_ms,
                              model::GpuReading& reading) {
  if (reading.processes.empty()) return;
  const auto samples = samples_since(query, since_unix_ms);
  std::map<unsigned, const nvmlProcessUtilizationSample_t*> newest;
  for (const auto& sample : samples) {
    auto& best = newest[sample.pid];
    if (best == nullptr || best->timeStamp < sample.timeStamp) best = &sample;
  }
  for (auto& process : reading.processes) {
    const auto found = newest.find(process.pid);
    const auto percent = found == newest.end() ? 0 : found->second->smUtil;
    if (percent <= 100) process.utilization_percent = static_cast<int>(percent);
  }
}

}  // namespace gantry::nvml
