// SPDX-License-Identifier: Apache-2.0
// The identity of a card. It is also available for a card that has fallen off the bus, because the
// library read it before.

#include "sim/libnvidia-ml/mig_internal.hpp"
#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <stdio.h>
#include <string.h>

using namespace gantry::sim::nvml;

namespace {

nvmlReturn_t text_or_unsupported(const char* text, char* out, unsigned int length) {
  if (text[0] == '\0' || strcmp(text, "N/A") == 0) return NVML_ERROR_NOT_SUPPORTED;
  return copy_text(text, out, length);
}

void print_bus_id(const gantry_sim_gpu& card, int digits, char* out, size_t size) {
  snprintf(out, size, "%0*X:%02X:%02X.0", digits, card.domain, card.bus, card.device);
}

template <typename Pci>
void fill_numbers(const gantry_sim_gpu& card, Pci& pci) {
  pci.domain = card.domain;
  pci.bus = card.bus;
  pci.device = card.device;
  pci.pciDeviceId = card.pci_id;
}

bool is_gsp_card(const gantry_sim_gpu& card) {
  return card.gsp != 0;
}

}  // namespace

namespace gantry::sim::nvml {

void fill_pci(const gantry_sim_gpu& card, nvmlPciInfo_t& pci) {
  fill_numbers(card, pci);
  pci.pciSubSystemId = card.pci_subsystem;
  print_bus_id(card, 4, pci.busIdLegacy, sizeof pci.busIdLegacy);
  print_bus_id(card, 8, pci.busId, sizeof pci.busId);
}

}  // namespace gantry::sim::nvml

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetName, device, Reach::Identity);
  if (!target.mig) return copy_text(target.card->name, name, length);
  char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE * 2];
  MigDevice found{};
  if (!find_mig(target, found)) return NVML_ERROR_NOT_FOUND;
  print_mig_name(target, found, text, sizeof text);
  return copy_text(text, name, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetUUID, device, Reach::Identity);
  if (!target.mig) return copy_text(target.card->uuid, uuid, length);
  MigDevice found{};
  if (!find_mig(target, found)) return NVML_ERROR_NOT_FOUND;
  return copy_text(found.uuid, uuid, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t* brand) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetBrand, device, Reach::Identity);
  GANTRY_NEED(brand);
  *brand = static_cast<nvmlBrandType_t>(target.card->nvml_brand);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetIndex, device, Reach::Identity);
  GANTRY_NEED(index);
  if (target.mig) return mig_index(target, *index) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
  for (uint32_t i = 0; i < session().count; ++i) {
    if (session().order[i] == target.gpu) *index = i;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial,
                                               unsigned int length) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSerial, device, Reach::Identity);
  return text_or_unsupported(target.card->serial, serial, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMinorNumber, device, Reach::Identity);
  GANTRY_NEED(minor);
  *minor = target.card->minor;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* part,
                                                        unsigned int length) {
  GANTRY_ENTER_GPU(nvmlDeviceGetBoardPartNumber, device, Reach::Identity);
  return text_or_unsupported(target.card->board_part, part, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device,
                                                       nvmlInforomObject_t object, char* version,
                                                       unsigned int length) {
  GANTRY_ENTER_GPU(nvmlDeviceGetInforomVersion, device);
  switch (object) {
    case NVML_INFOROM_OEM: return text_or_unsupported(target.card->inforom_oem, version, length);
    case NVML_INFOROM_ECC: return text_or_unsupported(target.card->inforom_ecc, version, length);
    case NVML_INFOROM_POWER:
      return text_or_unsupported(target.card->inforom_power, version, length);
    case NVML_INFOROM_DEN: return NVML_ERROR_NOT_SUPPORTED;
    default: return NVML_ERROR_INVALID_ARGUMENT;
  }
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char* version,
                                                            unsigned int length) {
  GANTRY_ENTER_GPU(nvmlDeviceGetInforomImageVersion, device);
  return text_or_unsupported(target.card->inforom_image, version, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device,
                                                                     unsigned int* checksum) {
  GANTRY_ENTER_GPU(nvmlDeviceGetInforomConfigurationChecksum, device);
  GANTRY_NEED(checksum);
  if (target.card->inforom_image[0] == '\0') return NVML_ERROR_NOT_SUPPORTED;
  *checksum = 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
  GANTRY_ENTER_GPU(nvmlDeviceValidateInforom, device);
  return target.card->inforom_image[0] == '\0' ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version,
                                                     unsigned int length) {
  GANTRY_ENTER_GPU(nvmlDeviceGetVbiosVersion, device, Reach::Identity);
  return text_or_unsupported(target.card->vbios, version, length);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int* board) {
  GANTRY_ENTER_GPU(nvmlDeviceGetBoardId, device, Reach::Identity);
  GANTRY_NEED(board);
  *board = target.card->board_id;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int* multi) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMultiGpuBoard, device, Reach::Identity);
  GANTRY_NEED(multi);
  *multi = 0;
  for (uint32_t gpu = 0; gpu < machine().gpu_count; ++gpu) {
    if (gpu != target.gpu && machine().gpu[gpu].board_id == target.card->board_id) *multi = 1;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t first, nvmlDevice_t second,
                                                 int* same) {
  GANTRY_ENTER_GPU(nvmlDeviceOnSameBoard, first, Reach::Identity);
  Target other{};
  if (const nvmlReturn_t result = resolve_gpu(second, other, Reach::Identity);
      result != NVML_SUCCESS) {
    return result;
  }
  GANTRY_NEED(same);
  *same = target.card->board_id == other.card->board_id ? 1 : 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int* module) {
  GANTRY_ENTER_GPU(nvmlDeviceGetModuleId, device, Reach::Identity);
  GANTRY_NEED(module);
  *module = target.card->module_id;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, gantryPciInfoV1_t* pci) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPciInfo, device, Reach::Identity);
  GANTRY_NEED(pci);
  fill_numbers(*target.card, *pci);
  print_bus_id(*target.card, 4, pci->busId, sizeof pci->busId);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, gantryPciInfoV2_t* pci) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPciInfo_v2, device, Reach::Identity);
  GANTRY_NEED(pci);
  fill_numbers(*target.card, *pci);
  pci->pciSubSystemId = target.card->pci_subsystem;
  print_bus_id(*target.card, 4, pci->busId, sizeof pci->busId);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPciInfo_v3, device, Reach::Identity);
  GANTRY_NEED(pci);
  fill_pci(*target.card, *pci);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* pci) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPciInfoExt, device, Reach::Identity);
  GANTRY_NEED(pci);
  if (pci->version != nvmlPciInfoExt_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  fill_numbers(*target.card, *pci);
  pci->pciSubSystemId = target.card->pci_subsystem;
  pci->baseClass = target.card->pci_class >> 16;
  pci->subClass = (target.card->pci_class >> 8) & 0xFF;
  print_bus_id(*target.card, 8, pci->busId, sizeof pci->busId);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major,
                                                              int* minor) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetCudaComputeCapability, device, Reach::Identity);
  GANTRY_NEED(major);
  GANTRY_NEED(minor);
  *major = static_cast<int>(target.card->cc_major);
  *minor = static_cast<int>(target.card->cc_minor);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device,
                                                     nvmlDeviceArchitecture_t* architecture) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetArchitecture, device, Reach::Identity);
  GANTRY_NEED(architecture);
  *architecture = target.card->nvml_architecture;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t* type) {
  GANTRY_ENTER_GPU(nvmlDeviceGetBusType, device, Reach::Identity);
  GANTRY_NEED(type);
  *type = NVML_BUS_TYPE_PCIE;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int* cores) {
  GANTRY_ENTER_GPU(nvmlDeviceGetNumGpuCores, device, Reach::Identity);
  GANTRY_NEED(cores);
  *cores = target.card->cores;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device,
                                                     nvmlPlatformInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPlatformInfo, device);
  GANTRY_NEED(info);
  if (info->version != nvmlPlatformInfo_v1 && info->version != nvmlPlatformInfo_v2) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  if (target.card->nvml_architecture < NVML_DEVICE_ARCH_HOPPER) return NVML_ERROR_NOT_SUPPORTED;
  // Both forms have the same size and end with the module's number.
  const unsigned int version = info->version;
  memset(info, 0, sizeof *info);
  info->version = version;
  info->peerType = 1;
  info->moduleId = static_cast<unsigned char>(target.card->module_id);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_t* pdi) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPdi, device, Reach::Identity);
  GANTRY_NEED(pdi);
  if (pdi->version != nvmlPdi_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (target.card->pdi == 0) return NVML_ERROR_NOT_SUPPORTED;
  pdi->value = target.card->pdi;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char* version) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGspFirmwareVersion, device);
  if (!is_gsp_card(*target.card)) return NVML_ERROR_NOT_SUPPORTED;
  return copy_text(machine().driver_version, version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int* enabled,
                                                        unsigned int* default_mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGspFirmwareMode, device);
  GANTRY_NEED(enabled);
  GANTRY_NEED(default_mode);
  *enabled = is_gsp_card(*target.card) ? 1 : 0;
  *default_mode = *enabled;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device,
                                                       nvmlBridgeChipHierarchy_t* hierarchy) {
  GANTRY_ENTER_GPU(nvmlDeviceGetBridgeChipInfo, device);
  GANTRY_NEED(hierarchy);
  return NVML_ERROR_NOT_SUPPORTED;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int* irq) {
  GANTRY_ENTER_GPU(nvmlDeviceGetIrqNum, device);
  GANTRY_NEED(irq);
  *irq = 40 + target.gpu;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int* bits) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMemoryBusWidth, device);
  GANTRY_NEED(bits);
  *bits = target.card->memory_bus_bits;
  return NVML_SUCCESS;
}
