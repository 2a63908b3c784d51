// SPDX-License-Identifier: Apache-2.0
// NVLink and the fabric behind it.

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <stdio.h>
#include <string.h>

namespace gantry::sim::nvml {

uint32_t nvlink_version(const gantry_sim_gpu& card) {
  switch (card.nvml_architecture) {
    case NVML_DEVICE_ARCH_PASCAL: return 1;     // 1.0
    case NVML_DEVICE_ARCH_VOLTA: return 2;      // 2.0
    case NVML_DEVICE_ARCH_TURING: return 3;     // 2.2
    case NVML_DEVICE_ARCH_AMPERE: return 4;     // 3.0
    case NVML_DEVICE_ARCH_HOPPER: return 6;     // 4.0
    case NVML_DEVICE_ARCH_BLACKWELL: return 7;  // 5.0
    default: return 0;
  }
}

uint32_t nvlink_mbps(const gantry_sim_gpu& card) {
  switch (card.nvml_architecture) {
    case NVML_DEVICE_ARCH_PASCAL: return 19688;
    case NVML_DEVICE_ARCH_VOLTA:
    case NVML_DEVICE_ARCH_TURING: return 25781;
    case NVML_DEVICE_ARCH_AMPERE: return 25000;
    case NVML_DEVICE_ARCH_HOPPER: return 26562;
    case NVML_DEVICE_ARCH_BLACKWELL: return 53125;
    default: return 0;
  }
}

// Switches train their links when the fabric manager starts.
bool nvlink_active(const gantry_sim_gpu& card, uint32_t link) {
  if (link >= card.nvlink_count) return false;
  return card.nvlink[link].remote_type != NVML_NVLINK_DEVICE_TYPE_SWITCH ||
         machine().fabric_manager != 0;
}

}  // namespace gantry::sim::nvml

using namespace gantry::sim::nvml;

namespace {

constexpr unsigned int kSwitchOfAmpere = 0x1AF110DE;
constexpr unsigned int kSwitchOfHopper = 0x22A310DE;

nvmlReturn_t check(nvmlDevice_t device, unsigned int link, Target& target) {
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  if (target.card->nvlink_count == 0) return NVML_ERROR_NOT_SUPPORTED;
  return link < target.card->nvlink_count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t remote(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t& pci) {
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  const auto& end = target.card->nvlink[link];
  pci = {};
  if (end.remote_type == NVML_NVLINK_DEVICE_TYPE_GPU && end.remote_gpu < machine().gpu_count) {
    fill_pci(machine().gpu[end.remote_gpu], pci);
    return NVML_SUCCESS;
  }
  if (sscanf(end.remote_bus_id, "%x:%x:%x", &pci.domain, &pci.bus, &pci.device) != 3) {
    return NVML_ERROR_UNKNOWN;
  }
  pci.pciDeviceId =
      target.card->nvml_architecture >= NVML_DEVICE_ARCH_HOPPER ? kSwitchOfHopper : kSwitchOfAmpere;
  snprintf(pci.busId, sizeof pci.busId, "%08X:%02X:%02X.0", pci.domain, pci.bus & 0xFF,
           pci.device & 0xFF);
  snprintf(pci.busIdLegacy, sizeof pci.busIdLegacy, "%04X:%02X:%02X.0", pci.domain & 0xFFFF,
           pci.bus & 0xFF, pci.device & 0xFF);
  return NVML_SUCCESS;
}

struct Fabric {
  nvmlGpuFabricState_t state;
  unsigned int health_mask;
  unsigned char summary;
};

// Only Hopper and later register with the fabric; on Ampere the fabric manager does not need them.
Fabric fabric_of(const gantry_sim_gpu& card) {
  bool behind_switch = false;
  for (uint32_t i = 0; i < card.nvlink_count; ++i) {
    if (card.nvlink[i].remote_type == NVML_NVLINK_DEVICE_TYPE_SWITCH) behind_switch = true;
  }
  if (!behind_switch || machine().fabric_manager < 0 ||
      card.nvml_architecture < NVML_DEVICE_ARCH_HOPPER) {
    return {NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, 0, NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED};
  }
  if (machine().fabric_manager == 0) {
    return {NVML_GPU_FABRIC_STATE_IN_PROGRESS, 0, NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED};
  }
  // Two bits per condition, 2 = "no": bandwidth, route recovery, unhealthy route, access timeout;
  // then 1 = "configuration is right".
  return {NVML_GPU_FABRIC_STATE_COMPLETED, 2U | 2U << 2 | 2U << 4 | 2U << 6 | 1U << 8,
          NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY};
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                                    nvmlEnableState_t* active) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkState);
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(active);
  *active = nvlink_active(*target.card, link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                                      unsigned int* version) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkVersion);
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(version);
  *version = nvlink_version(*target.card);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                                         nvmlNvLinkCapability_t capability,
                                                         unsigned int* result_out) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkCapability);
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  if (result_out == nullptr || capability >= NVML_NVLINK_CAP_COUNT)
    return NVML_ERROR_INVALID_ARGUMENT;
  *result_out = capability == NVML_NVLINK_CAP_SLI_BRIDGE ? 0 : 1;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                                            gantryPciInfoV2_t* pci) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkRemotePciInfo);
  nvmlPciInfo_t found{};
  if (const auto result = remote(device, link, found); result != NVML_SUCCESS) return result;
  GANTRY_NEED(pci);
  *pci = {{}, found.domain, found.bus, found.device, found.pciDeviceId, found.pciSubSystemId, {}};
  memcpy(pci->busId, found.busIdLegacy, sizeof pci->busId);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
                                                               unsigned int link,
                                                               nvmlPciInfo_t* pci) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkRemotePciInfo_v2);
  nvmlPciInfo_t found{};
  if (const auto result = remote(device, link, found); result != NVML_SUCCESS) return result;
  GANTRY_NEED(pci);
  *pci = found;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device,
                                                               unsigned int link,
                                                               nvmlIntNvLinkDeviceType_t* type) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkRemoteDeviceType);
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(type);
  *type = static_cast<nvmlIntNvLinkDeviceType_t>(target.card->nvlink[link].remote_type);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                                           nvmlNvLinkErrorCounter_t counter,
                                                           unsigned long long* value) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkErrorCounter);
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  if (value == nullptr || counter >= NVML_NVLINK_ERROR_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  *value = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t device,
                                                                 unsigned int link, unsigned int,
                                                                 unsigned long long* rx,
                                                                 unsigned long long* tx) {
  GANTRY_ENTER(nvmlDeviceGetNvLinkUtilizationCounter);
  Target target{};
  if (const auto result = check(device, link, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(rx);
  GANTRY_NEED(tx);
  if (target.card->nvml_architecture >= NVML_DEVICE_ARCH_AMPERE) return NVML_ERROR_NOT_SUPPORTED;
  *rx = *tx = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t device, nvmlNvLinkInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetNvLinkInfo, device);
  GANTRY_NEED(info);
  if (info->version != nvmlNvLinkInfo_v1 && info->version != nvmlNvLinkInfo_v2) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  if (target.card->nvlink_count == 0) return NVML_ERROR_NOT_SUPPORTED;
  info->isNvleEnabled = 0;
  if (info->version == nvmlNvLinkInfo_v2) info->firmwareInfo = {};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device,
                                                      nvmlGpuFabricInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuFabricInfo, device);
  GANTRY_NEED(info);
  *info = {};
  info->state = fabric_of(*target.card).state;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
                                                       nvmlGpuFabricInfoV_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuFabricInfoV, device);
  GANTRY_NEED(info);
  const unsigned int version = info->version;
  if (version != nvmlGpuFabricInfo_v2 && version != nvmlGpuFabricInfo_v3) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  const Fabric fabric = fabric_of(*target.card);
  nvmlGpuFabricInfo_v3_t third{};
  third.version = version;
  third.state = fabric.state;
  third.healthMask = fabric.health_mask;
  third.healthSummary = fabric.summary;
  memcpy(static_cast<void*>(info), &third,
         version == nvmlGpuFabricInfo_v3 ? sizeof third : sizeof(nvmlGpuFabricInfo_v2_t));
  return NVML_SUCCESS;
}
