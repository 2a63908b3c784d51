// SPDX-License-Identifier: Apache-2.0
// Errors of the memory. The state counts them for the whole card; they are DRAM errors.

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <unistd.h>

using namespace gantry::sim::nvml;

namespace {

bool has_ecc(const Target& target) {
  return target.card->ecc_supported != 0;
}
bool remaps_rows(const Target& target) {
  return has_ecc(target) && target.card->nvml_architecture >= NVML_DEVICE_ARCH_AMPERE;
}

// 640 on A100, 2560 on H100, 3072 on H200: with the width of the memory bus, disabled parts
// included.
unsigned int bank_count(const gantry_sim_gpu& card) {
  if (card.nvml_architecture < NVML_DEVICE_ARCH_HOPPER) return card.memory_bus_bits / 8;
  return (card.memory_bus_bits + 1023) / 1024 * 1024 / 2;
}

bool valid(nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter) {
  return error < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT;
}

nvmlReturn_t no_retired_pages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                              unsigned int* count) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  if (count == nullptr || cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT)
    return NVML_ERROR_INVALID_ARGUMENT;
  // Cards from Ampere on remap rows instead.
  if (!has_ecc(target) || remaps_rows(target)) return NVML_ERROR_NOT_SUPPORTED;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

namespace gantry::sim::nvml {

unsigned long long ecc_errors(const gantry_sim_gpu_state& now, nvmlMemoryErrorType_t error,
                              nvmlEccCounterType_t counter) {
  const bool corrected = error == NVML_MEMORY_ERROR_TYPE_CORRECTED;
  if (counter == NVML_VOLATILE_ECC) {
    return corrected ? now.ecc_corrected_volatile : now.ecc_uncorrected_volatile;
  }
  return corrected ? now.ecc_corrected_aggregate : now.ecc_uncorrected_aggregate;
}

}  // namespace gantry::sim::nvml

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current,
                                                nvmlEnableState_t* pending) {
  GANTRY_ENTER_GPU(nvmlDeviceGetEccMode, device);
  GANTRY_NEED(current);
  GANTRY_NEED(pending);
  if (!has_ecc(target)) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device,
                                                       nvmlEnableState_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDefaultEccMode, device);
  GANTRY_NEED(mode);
  if (!has_ecc(target)) return NVML_ERROR_NOT_SUPPORTED;
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device,
                                                       nvmlMemoryErrorType_t error,
                                                       nvmlEccCounterType_t counter,
                                                       unsigned long long* count) {
  GANTRY_ENTER_GPU(nvmlDeviceGetTotalEccErrors, device);
  if (count == nullptr || !valid(error, counter)) return NVML_ERROR_INVALID_ARGUMENT;
  if (!has_ecc(target)) return NVML_ERROR_NOT_SUPPORTED;
  *count = ecc_errors(gpu_now(target.gpu), error, counter);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device,
                                                          nvmlMemoryErrorType_t error,
                                                          nvmlEccCounterType_t counter,
                                                          nvmlEccErrorCounts_t* counts) {
  GANTRY_ENTER_GPU(nvmlDeviceGetDetailedEccErrors, device);
  if (counts == nullptr || !valid(error, counter)) return NVML_ERROR_INVALID_ARGUMENT;
  if (!has_ecc(target)) return NVML_ERROR_NOT_SUPPORTED;
  *counts = {};
  counts->deviceMemory = ecc_errors(gpu_now(target.gpu), error, counter);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device,
                                                           nvmlMemoryErrorType_t error,
                                                           nvmlEccCounterType_t counter,
                                                           nvmlMemoryLocation_t location,
                                                           unsigned long long* count) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMemoryErrorCounter, device);
  if (count == nullptr || !valid(error, counter) || location >= NVML_MEMORY_LOCATION_COUNT) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  if (!has_ecc(target)) return NVML_ERROR_NOT_SUPPORTED;
  *count = 0;
  if (location == NVML_MEMORY_LOCATION_DRAM) {
    *count = ecc_errors(gpu_now(target.gpu), error, counter);
    return NVML_SUCCESS;
  }
  // Turing and later count their caches as SRAM; earlier cards name each of them.
  const bool sram = target.card->nvml_architecture >= NVML_DEVICE_ARCH_TURING;
  if (location == NVML_MEMORY_LOCATION_SRAM) return sram ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
  return sram ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device,
                                                         nvmlEccCounterType_t counter) {
  GANTRY_ENTER_GPU(nvmlDeviceClearEccErrorCounts, device);
  if (counter >= NVML_ECC_COUNTER_TYPE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  if (!has_ecc(target)) return NVML_ERROR_NOT_SUPPORTED;
  return clear_ecc(target.gpu, counter);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                           nvmlEccSramErrorStatus_t* status) {
  GANTRY_ENTER_GPU(nvmlDeviceGetSramEccErrorStatus, device);
  GANTRY_NEED(status);
  if (status->version != nvmlEccSramErrorStatus_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (!remaps_rows(target)) return NVML_ERROR_NOT_SUPPORTED;
  *status = {};
  status->version = nvmlEccSramErrorStatus_v1;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device,
                                                     nvmlPageRetirementCause_t cause,
                                                     unsigned int* count, unsigned long long*) {
  GANTRY_ENTER(nvmlDeviceGetRetiredPages);
  return no_retired_pages(device, cause, count);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device,
                                                        nvmlPageRetirementCause_t cause,
                                                        unsigned int* count, unsigned long long*,
                                                        unsigned long long*) {
  GANTRY_ENTER(nvmlDeviceGetRetiredPages_v2);
  return no_retired_pages(device, cause, count);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device,
                                                                  nvmlEnableState_t* pending) {
  GANTRY_ENTER_GPU(nvmlDeviceGetRetiredPagesPendingStatus, device);
  GANTRY_NEED(pending);
  if (!has_ecc(target) || remaps_rows(target)) return NVML_ERROR_NOT_SUPPORTED;
  *pending = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int* correctable,
                                                     unsigned int* uncorrectable,
                                                     unsigned int* pending, unsigned int* failure) {
  GANTRY_ENTER_GPU(nvmlDeviceGetRemappedRows, device);
  GANTRY_NEED(correctable);
  GANTRY_NEED(uncorrectable);
  GANTRY_NEED(pending);
  GANTRY_NEED(failure);
  if (!remaps_rows(target)) return NVML_ERROR_NOT_SUPPORTED;
  const auto now = gpu_now(target.gpu);
  *correctable = now.remapped_correctable;
  *uncorrectable = now.remapped_uncorrectable;
  *pending = now.remap_pending;
  *failure = now.remap_failure;
  return NVML_SUCCESS;
}

// Banks by what they have left: those with a remapped row have "high", the others "max".
GANTRY_EXPORT nvmlReturn_t
nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t* values) {
  GANTRY_ENTER_GPU(nvmlDeviceGetRowRemapperHistogram, device);
  GANTRY_NEED(values);
  if (!remaps_rows(target)) return NVML_ERROR_NOT_SUPPORTED;
  const auto now = gpu_now(target.gpu);
  const unsigned int banks = bank_count(*target.card);
  unsigned int touched = now.remapped_correctable + now.remapped_uncorrectable;
  if (touched > banks) touched = banks;
  *values = {banks - touched, touched, 0, 0, 0};
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device,
                                                     nvmlRepairStatus_t* status) {
  GANTRY_ENTER_GPU(nvmlDeviceGetRepairStatus, device);
  GANTRY_NEED(status);
  if (status->version != nvmlRepairStatus_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (!remaps_rows(target)) return NVML_ERROR_NOT_SUPPORTED;
  *status = {nvmlRepairStatus_v1, 0, 0};
  return NVML_SUCCESS;
}
