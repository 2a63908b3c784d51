// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <string.h>

using namespace gantry::sim::nvml;

namespace {

nvmlEnableState_t enabled(int32_t flag) {
  return flag != 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
}

bool is_vgpu(const gantry_sim_gpu& card) {
  return strcmp(card.virtualization, "VGPU") == 0;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDisplayMode, device);
  GANTRY_NEED(mode);
  *mode = enabled(target.card->display_attached);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device,
                                                      nvmlEnableState_t* active) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDisplayActive, device);
  GANTRY_NEED(active);
  *active = enabled(target.card->display_active);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, nvmlDriverModel_t*,
                                                    nvmlDriverModel_t*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDriverModel, device);
  return NVML_ERROR_NOT_SUPPORTED;  // Windows
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, nvmlDriverModel_t*,
                                                       nvmlDriverModel_t*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDriverModel_v2, device);
  return NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t device,
                                                         nvmlGpuOperationMode_t*,
                                                         nvmlGpuOperationMode_t*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuOperationMode, device);
  return NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t api,
                                                       nvmlEnableState_t* restricted) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAPIRestriction, device);
  GANTRY_NEED(restricted);
  return api < NVML_RESTRICTED_API_COUNT ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                                           nvmlGpuVirtualizationMode_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetVirtualizationMode, device);
  GANTRY_NEED(mode);
  *mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
  if (strcmp(target.card->virtualization, "Pass-Through") == 0) {
    *mode = NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH;
  } else if (is_vgpu(*target.card)) {
    *mode = NVML_GPU_VIRTUALIZATION_MODE_VGPU;
  } else if (strcmp(target.card->virtualization, "Host VGPU") == 0) {
    *mode = NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t device,
                                                     nvmlHostVgpuMode_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetHostVgpuMode, device);
  GANTRY_NEED(mode);
  return NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(
    nvmlDevice_t device, nvmlGridLicensableFeatures_t* features) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGridLicensableFeatures_v4, device);
  GANTRY_NEED(features);
  *features = {};
  if (!is_vgpu(*target.card)) return NVML_SUCCESS;
  features->isGridLicenseSupported = 1;
  features->licensableFeaturesCount = 1;
  auto& feature = features->gridLicensableFeatures[0];
  feature.featureCode = NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE;
  const auto gpu = static_cast<int32_t>(target.gpu);
  const char* product = gantry_sim_field(gpu, "vgpu.license_product");
  const bool licensed = strcmp(gantry_sim_field(gpu, "vgpu.license_status"), "Licensed") == 0;
  feature.featureState = licensed ? 1 : 0;
  feature.featureEnabled = 1;
  return copy_text(product, feature.productName, sizeof feature.productName);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device,
                                                     nvmlC2cModeInfo_v1_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetC2cModeInfoV, device);
  GANTRY_NEED(info);
  if (target.card->nvml_architecture < NVML_DEVICE_ARCH_HOPPER) return NVML_ERROR_NOT_SUPPORTED;
  info->isC2cEnabled = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device,
                                                       nvmlDeviceAddressingMode_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAddressingMode, device);
  GANTRY_NEED(mode);
  if (mode->version != nvmlDeviceAddressingMode_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const char* known = gantry_sim_field(static_cast<int32_t>(target.gpu), "addressing_mode");
  mode->value = strcmp(known, "HMM") == 0   ? NVML_DEVICE_ADDRESSING_MODE_HMM
                : strcmp(known, "ATS") == 0 ? NVML_DEVICE_ADDRESSING_MODE_ATS
                                            : NVML_DEVICE_ADDRESSING_MODE_NONE;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t device,
                                                           nvmlDramEncryptionInfo_t*,
                                                           nvmlDramEncryptionInfo_t*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDramEncryptionMode, device);
  return NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device,
                                                       nvmlEnableState_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAccountingMode, device);
  GANTRY_NEED(mode);
  *mode = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int,
                                                        nvmlAccountingStats_t* stats) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAccountingStats, device);
  GANTRY_NEED(stats);
  return NVML_ERROR_NOT_FOUND;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count,
                                                       unsigned int*) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAccountingPids, device);
  GANTRY_NEED(count);
  *count = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device,
                                                             unsigned int* size) {
  GANTRY_ENTER_GPU(nvmlDeviceGetAccountingBufferSize, device);
  GANTRY_NEED(size);
  *size = 4000;
  return NVML_SUCCESS;
}
