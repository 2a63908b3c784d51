// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <stdlib.h>

using namespace gantry::sim::nvml;

namespace {

// If the link is below its maximum, a field of the card has the current value.
uint32_t now_or(const Target& target, const char* field, uint32_t otherwise) {
  const char* text = gantry_sim_field(static_cast<int32_t>(target.gpu), field);
  return text[0] == '\0' ? otherwise : static_cast<uint32_t>(strtoul(text, nullptr, 10));
}

uint32_t current_generation(const Target& target) {
  return now_or(target, "pcie.gen_current", target.card->pcie_gen_max);
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device,
                                                              unsigned int* generation) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMaxPcieLinkGeneration, device);
  return give_positive(target.card->pcie_gen_max, generation);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device,
                                                                 unsigned int* generation) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuMaxPcieLinkGeneration, device);
  return give_positive(now_or(target, "pcie.gen_device_max", target.card->pcie_gen_max),
                       generation);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int* width) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMaxPcieLinkWidth, device);
  return give_positive(target.card->pcie_width_max, width);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device,
                                                               unsigned int* generation) {
  GANTRY_ENTER_GPU(nvmlDeviceGetCurrPcieLinkGeneration, device);
  return give_positive(current_generation(target), generation);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device,
                                                          unsigned int* width) {
  GANTRY_ENTER_GPU(nvmlDeviceGetCurrPcieLinkWidth, device);
  return give_positive(now_or(target, "pcie.width_current", target.card->pcie_width_max), width);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int* speed) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPcieLinkMaxSpeed, device);
  return give_positive(target.card->pcie_gen_max, speed);  // its numbers are the generations
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int* mbps) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPcieSpeed, device);
  constexpr uint32_t kMbps[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
  const uint32_t generation = current_generation(target);
  return give_positive(generation < 7 ? kMbps[generation] : 0, mbps);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device,
                                                          unsigned int* value) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPcieReplayCounter, device);
  GANTRY_NEED(value);
  *value = now_or(target, "pcie.replay_counter", 0);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device,
                                                       nvmlPcieUtilCounter_t counter,
                                                       unsigned int* value) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPcieThroughput, device);
  GANTRY_NEED(value);
  if (counter >= NVML_PCIE_UTIL_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  *value = 0;
  return NVML_SUCCESS;
}
