// SPDX-License-Identifier: Apache-2.0
// Processes on one GPU, compute and graphics.
#include "gpu/nvml/gpu_internal.hpp"

#include <algorithm>

namespace gantry::nvml {
namespace {

constexpr std::size_t kNameSize = 256;

void add(model::Gpu& gpu, unsigned pid, unsigned long long memory, char type) {
  const auto same = [&](const auto& process) { return process.pid == pid; };
  const auto known = std::find_if(gpu.processes.begin(), gpu.processes.end(), same);
  if (known != gpu.processes.end()) {
    if (known->type != type) known->type = 'B';
    return;
  }
  model::GpuProcess process{.pid = pid, .memory_bytes = {}, .name = "", .type = type};
  if (memory != static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE))
    process.memory_bytes = memory;
  gpu.processes.push_back(std::move(process));
}

}  // namespace

void read_processes(DeviceQuery& query, model::Gpu& gpu) {
  std::vector<nvmlProcessInfo_t> processes;
  std::vector<nvmlProcessInfo_v1_t> old;
  if (GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses_v3, processes) ||
      GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses_v2, processes)) {
    for (const auto& p : processes) add(gpu, p.pid, p.usedGpuMemory, 'C');
  } else if (GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses, old)) {
    for (const auto& p : old) add(gpu, p.pid, p.usedGpuMemory, 'C');
  }
  if (GANTRY_QUERY_LIST(query, nvmlDeviceGetGraphicsRunningProcesses_v3, processes) ||
      GANTRY_QUERY_LIST(query, nvmlDeviceGetGraphicsRunningProcesses_v2, processes)) {
    for (const auto& p : processes) add(gpu, p.pid, p.usedGpuMemory, 'G');
  } else if (GANTRY_QUERY_LIST(query, nvmlDeviceGetGraphicsRunningProcesses, old)) {
    for (const auto& p : old) add(gpu, p.pid, p.usedGpuMemory, 'G');
  }
  for (auto& process : gpu.processes) {
    std::array<char, kNameSize> name{};
    if (GANTRY_QUERY(query, nvmlSystemGetProcessName, process.pid, name.data(),
                     static_cast<unsigned>(name.size()))) {
      process.name = to_string(name);
    }
  }
}

}  // namespace gantry::nvml
