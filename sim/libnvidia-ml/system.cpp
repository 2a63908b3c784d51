// SPDX-License-Identifier: Apache-2.0
// Queries of the machine, not of one GPU.

#include "sim/libnvidia-ml/nvml_internal.hpp"
#include "sim/libnvidia-ml/private.h"
#include "sim/libnvidia-ml/state_change_internal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

using namespace gantry::sim::nvml;

namespace {

nvmlReturn_t cuda_version(int* version) {
  GANTRY_NEED(version);
  *version = static_cast<int>(machine().cuda_version);
  return NVML_SUCCESS;
}

bool any_confidential_card() {
  for (uint32_t i = 0; i < machine().gpu_count; ++i) {
    if (machine().gpu[i].nvml_architecture >= NVML_DEVICE_ARCH_HOPPER) return true;
  }
  return false;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  GANTRY_ENTER(nvmlSystemGetDriverVersion);
  return copy_text(machine().driver_version, version, length);
}

// This call works before nvmlInit: it returns the library's own version.
GANTRY_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  if (const int fault = gantry_sim_fault("nvmlSystemGetNVMLVersion"); fault != 0) {
    return static_cast<nvmlReturn_t>(fault);
  }
  if (gantry_sim_image() == nullptr) return NVML_ERROR_UNINITIALIZED;
  char text[64];
  snprintf(text, sizeof text, "%u.%s", machine().nvml_version_major, machine().driver_version);
  return copy_text(text, version, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  GANTRY_ENTER(nvmlSystemGetCudaDriverVersion);
  return cuda_version(version);
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  GANTRY_ENTER(nvmlSystemGetCudaDriverVersion_v2);
  return cuda_version(version);
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name,
                                                    unsigned int length) {
  GANTRY_ENTER(nvmlSystemGetProcessName);
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char path[64];
  char text[PATH_MAX];
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  ssize_t got = gantry::sim::read_small_file(path, text, sizeof text);
  if (got < 0) return errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_NOT_FOUND;
  if (got == 0) {  // a kernel thread, or a process that is exiting
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    got = gantry::sim::read_small_file(path, text, sizeof text);
    if (got <= 0) return NVML_ERROR_NOT_FOUND;
    text[strcspn(text, "\n")] = '\0';
  }
  snprintf(name, length, "%s", text);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetHicVersion(unsigned int* count, nvmlHwbcEntry_t*) {
  GANTRY_ENTER(nvmlSystemGetHicVersion);
  GANTRY_NEED(count);
  *count = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t* info,
                                                     unsigned int length) {
  GANTRY_ENTER(nvmlSystemGetDriverBranch);
  GANTRY_NEED(info);
  if (info->version != nvmlSystemDriverBranchInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  // "r580_00" and, from the second feature release of a branch on, its own: the field says.
  char text[32];
  const char* known = gantry_sim_field(-1, "driver_branch");
  snprintf(text, sizeof text, "r%u_00", session().branch);
  return copy_text(known[0] != '\0' ? known : text, info->branch,
                   length < sizeof info->branch ? length : sizeof info->branch);
}

GANTRY_EXPORT nvmlReturn_t
nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t* capabilities) {
  GANTRY_ENTER(nvmlSystemGetConfComputeCapabilities);
  GANTRY_NEED(capabilities);
  *capabilities = {0, any_confidential_card() ? 1U : 0U};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t* state) {
  GANTRY_ENTER(nvmlSystemGetConfComputeState);
  GANTRY_NEED(state);
  if (!any_confidential_card()) return NVML_ERROR_NOT_SUPPORTED;
  *state = {};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int* accepting) {
  GANTRY_ENTER(nvmlSystemGetConfComputeGpusReadyState);
  GANTRY_NEED(accepting);
  if (!any_confidential_card()) return NVML_ERROR_NOT_SUPPORTED;
  *accepting = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t
nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t* settings) {
  GANTRY_ENTER(nvmlSystemGetConfComputeSettings);
  GANTRY_NEED(settings);
  if (settings->version != nvmlSystemConfComputeSettings_v1) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  if (!any_confidential_card()) return NVML_ERROR_NOT_SUPPORTED;
  *settings = {nvmlSystemConfComputeSettings_v1, 0, 0, 0, 0};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlSystemGetNvlinkBwMode(unsigned int* mode) {
  GANTRY_ENTER(nvmlSystemGetNvlinkBwMode);
  GANTRY_NEED(mode);
  for (uint32_t i = 0; i < machine().gpu_count; ++i) {
    if (machine().gpu[i].nvlink_count == 0) continue;
    *mode = 0;  // full
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_SUPPORTED;
}

// S-class units are no longer in use; the real library finds none either.
GANTRY_EXPORT nvmlReturn_t nvmlUnitGetCount(unsigned int* count) {
  GANTRY_ENTER(nvmlUnitGetCount);
  GANTRY_NEED(count);
  *count = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int, nvmlUnit_t* unit) {
  GANTRY_ENTER(nvmlUnitGetHandleByIndex);
  GANTRY_NEED(unit);
  return NVML_ERROR_INVALID_ARGUMENT;
}

GANTRY_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int* count) {
  GANTRY_ENTER(nvmlGetExcludedDeviceCount);
  GANTRY_NEED(count);
  *count = 0;
  for (uint32_t i = 0; i < machine().gpu_count; ++i)
    *count += machine().gpu[i].excluded != 0 ? 1 : 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int index,
                                                            nvmlExcludedDeviceInfo_t* info) {
  GANTRY_ENTER(nvmlGetExcludedDeviceInfoByIndex);
  GANTRY_NEED(info);
  for (uint32_t i = 0; i < machine().gpu_count; ++i) {
    const auto& card = machine().gpu[i];
    if (card.excluded == 0 || index-- != 0) continue;
    *info = {};
    fill_pci(card, info->pciInfo);
    return copy_text(card.uuid, info->uuid, sizeof info->uuid);
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

GANTRY_EXPORT const char* gantrySimField(nvmlDevice_t device, const char* name) {
  if (name == nullptr || gantry_sim_image() == nullptr) return "";
  if (device == nullptr) return gantry_sim_field(-1, name);
  Target target{};
  if (session().users <= 0 || resolve(device, target, Reach::Identity) != NVML_SUCCESS) return "";
  if (strcmp(name, "gpu_part_number") == 0) return target.card->gpu_part;
  return gantry_sim_field(static_cast<int32_t>(target.gpu), name);
}

GANTRY_EXPORT nvmlReturn_t gantrySimPciInfo(unsigned int index, nvmlPciInfo_t* pci) {
  GANTRY_NEED(pci);
  if (session().users <= 0) return NVML_ERROR_UNINITIALIZED;
  if (index >= session().count) return NVML_ERROR_INVALID_ARGUMENT;
  fill_pci(machine().gpu[session().order[index]], *pci);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t gantrySimResetGpu(nvmlDevice_t device) {
  if (session().users <= 0) return NVML_ERROR_UNINITIALIZED;
  Target target{};
  const nvmlReturn_t found = resolve_gpu(device, target);
  return found == NVML_SUCCESS ? reset_gpu(target) : found;
}
