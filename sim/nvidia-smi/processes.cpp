// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/processes.hpp"

#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

using ListCall = nvmlReturn_t(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);

void add(const Gpu& gpu, const nvmlProcessInfo_t& info, const char* type, Processes& out) {
  if (out.count == kMaxListedProcesses) return;
  Process& row = out.rows[out.count++];
  row = Process();
  row.pid = info.pid;
  snprintf(row.type, sizeof row.type, "%s", type);
  row.gpu_instance = info.gpuInstanceId;
  row.compute_instance = info.computeInstanceId;
  char name[200] = {};
  const nvmlReturn_t error = call(gpu.session->nvml.nvmlSystemGetProcessName, info.pid, name,
                                  static_cast<unsigned>(sizeof name));
  row.name.set("%s", error == NVML_SUCCESS           ? name
                     : error == NVML_ERROR_NOT_FOUND ? "[Not Found]"
                                                     : "[Insufficient Permissions]");
  if (info.usedGpuMemory == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE)) {
    row.memory.set("%s", kNotAvailable);
  } else {
    row.memory.set("%llu MiB", mebibytes(info.usedGpuMemory));
  }
}

bool list(ListCall* function, const Gpu& gpu, const char* type, Processes& out) {
  nvmlProcessInfo_t infos[kMaxListedProcesses] = {};
  unsigned count = kMaxListedProcesses;
  const nvmlReturn_t error = call(function, gpu.handle, &count, infos);
  if (error != NVML_SUCCESS) return error != NVML_ERROR_FUNCTION_NOT_FOUND;
  for (unsigned i = 0; i < count && i < kMaxListedProcesses; ++i) add(gpu, infos[i], type, out);
  return true;
}

// The first form of the call does not support MIG.
void list_old(const Gpu& gpu, Processes& out) {
  nvmlProcessInfo_v1_t infos[kMaxListedProcesses] = {};
  unsigned count = kMaxListedProcesses;
  if (call(gpu.session->nvml.nvmlDeviceGetComputeRunningProcesses, gpu.handle, &count, infos) !=
      NVML_SUCCESS) {
    return;
  }
  for (unsigned i = 0; i < count && i < kMaxListedProcesses; ++i) {
    add(gpu, {infos[i].pid, infos[i].usedGpuMemory, kNoInstance, kNoInstance}, "C", out);
  }
}

}  // namespace

void read_processes(const Gpu& gpu, Contexts which, Processes& out) {
  const Nvml& nvml = gpu.session->nvml;
  out.count = 0;
  if (!list(nvml.nvmlDeviceGetComputeRunningProcesses_v3, gpu, "C", out) &&
      !list(nvml.nvmlDeviceGetComputeRunningProcesses_v2, gpu, "C", out)) {
    list_old(gpu, out);
  }
  list(nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, gpu, "M+C", out);
  if (which == Contexts::All) list(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, gpu, "G", out);
}

}  // namespace smi
