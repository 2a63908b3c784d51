// SPDX-License-Identifier: Apache-2.0
// Processes on a GPU. Processes of other pid namespaces that have no pid here are omitted.

#include "sim/libnvidia-ml/usage_internal.hpp"

using namespace gantry::sim::nvml;

namespace {

constexpr unsigned int kNoInstance = 0xFFFFFFFF;

void put(const gantry_sim_use& use, nvmlProcessInfo_v1_t& out) {
  out = {static_cast<unsigned int>(use.pid), use.bytes};
}

void put(const gantry_sim_use& use, nvmlProcessInfo_v2_t& out) {
  out = {static_cast<unsigned int>(use.pid), use.bytes,
         use.gi_id < 0 ? kNoInstance : static_cast<unsigned int>(use.gi_id),
         use.ci_id < 0 ? kNoInstance : static_cast<unsigned int>(use.ci_id)};
}

void put(const gantry_sim_use& use, nvmlProcessDetail_v1_t& out) {
  nvmlProcessInfo_v2_t common{};
  put(use, common);
  out = {common.pid, common.usedGpuMemory, common.gpuInstanceId, common.computeInstanceId, 0};
}

// An MPS server is an ordinary process; its clients have a list of their own.
enum class Users { Ordinary, MpsClients };

bool is_listed(const gantry_sim_use& use, const Target& target, Users which) {
  const bool client = use.mps_server != 0 && use.mps_server != use.slot + 1;
  return use.pid > 0 && client == (which == Users::MpsClients) &&
         (!target.mig || use.ci_id == static_cast<int32_t>(target.ci_id));
}

// Fills as many as fit and returns the total number.
template <typename Info>
nvmlReturn_t list_processes(nvmlDevice_t device, Users which, unsigned int* count, Info* infos) {
  Target target{};
  if (const nvmlReturn_t result = resolve(device, target); result != NVML_SUCCESS) return result;
  if (count == nullptr || (infos == nullptr && *count > 0)) return NVML_ERROR_INVALID_ARGUMENT;
  const MemoryUses uses(target);
  unsigned int found = 0;
  for (const auto& use : uses) {
    if (!is_listed(use, target, which)) continue;
    if (found < *count) put(use, infos[found]);
    ++found;
  }
  const bool fits = found <= *count;
  *count = found;
  return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

// No process draws on a simulated card.
nvmlReturn_t list_none(nvmlDevice_t device, unsigned int* count) {
  Target target{};
  if (const nvmlReturn_t result = resolve(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(count);
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

#define GANTRY_LIST(function, which, info)                                                     \
  GANTRY_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int* count, info* infos) { \
    GANTRY_ENTER(function);                                                                    \
    return list_processes(device, Users::which, count, infos);                                 \
  }
#define GANTRY_LIST_NONE(function, info)                                                 \
  GANTRY_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int* count, info*) { \
    GANTRY_ENTER(function);                                                              \
    return list_none(device, count);                                                     \
  }

GANTRY_LIST(nvmlDeviceGetComputeRunningProcesses, Ordinary, nvmlProcessInfo_v1_t)
GANTRY_LIST(nvmlDeviceGetComputeRunningProcesses_v2, Ordinary, nvmlProcessInfo_v2_t)
GANTRY_LIST(nvmlDeviceGetComputeRunningProcesses_v3, Ordinary, nvmlProcessInfo_t)
GANTRY_LIST_NONE(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
GANTRY_LIST_NONE(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
GANTRY_LIST_NONE(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
GANTRY_LIST(nvmlDeviceGetMPSComputeRunningProcesses, MpsClients, nvmlProcessInfo_v1_t)
GANTRY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MpsClients, nvmlProcessInfo_v2_t)
GANTRY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MpsClients, nvmlProcessInfo_t)

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                                 nvmlProcessDetailList_t* details) {
  GANTRY_ENTER(nvmlDeviceGetRunningProcessDetailList);
  GANTRY_NEED(details);
  if (details->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (details->mode >= NVML_PROCESS_MODE_MAX) return NVML_ERROR_INVALID_ARGUMENT;
  if (details->mode == NVML_PROCESS_MODE_GRAPHICS)
    return list_none(device, &details->numProcArrayEntries);
  const Users which = details->mode == NVML_PROCESS_MODE_MPS ? Users::MpsClients : Users::Ordinary;
  return list_processes(device, which, &details->numProcArrayEntries, details->procArray);
}
