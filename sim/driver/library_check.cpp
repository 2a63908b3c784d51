// SPDX-License-Identifier: Apache-2.0

#include "sim/driver/library_internal.hpp"

#include <string.h>

namespace gantry::sim {
namespace {

template <size_t N>
bool ends(const char (&text)[N]) {
  return memchr(text, '\0', N) != nullptr;
}

bool profile_is_sound(const gantry_sim_mig_profile& profile) {
  return ends(profile.name) && profile.placement_count <= 8;
}

bool gpu_is_sound(const gantry_sim_gpu& gpu) {
  if (!ends(gpu.uuid) || !ends(gpu.name) || !ends(gpu.brand) || !ends(gpu.architecture) ||
      !ends(gpu.vbios) || !ends(gpu.serial) || !ends(gpu.board_part) || !ends(gpu.gpu_part) ||
      !ends(gpu.inforom_image) || !ends(gpu.inforom_oem) || !ends(gpu.inforom_ecc) ||
      !ends(gpu.inforom_power) || !ends(gpu.virtualization)) {
    return false;
  }
  if (gpu.mig_profile_count > GANTRY_SIM_MAX_MIG_PROFILES) return false;
  if (gpu.nvlink_count > GANTRY_SIM_MAX_LINKS) return false;
  for (uint32_t i = 0; i < gpu.mig_profile_count; ++i) {
    if (!profile_is_sound(gpu.mig_profile[i])) return false;
  }
  for (uint32_t i = 0; i < gpu.nvlink_count; ++i) {
    if (!ends(gpu.nvlink[i].remote_bus_id)) return false;
  }
  return true;
}

}  // namespace

bool is_machine_valid(const gantry_sim_machine& machine) {
  if (!ends(machine.name) || !ends(machine.driver_version) || !ends(machine.kernel_version) ||
      !ends(machine.library_directory)) {
    return false;
  }
  if (machine.gpu_count > GANTRY_SIM_MAX_GPUS || machine.field_count > GANTRY_SIM_MAX_FIELDS) {
    return false;
  }
  for (uint32_t i = 0; i < machine.gpu_count; ++i) {
    if (!gpu_is_sound(machine.gpu[i])) return false;
  }
  for (uint32_t i = 0; i < machine.field_count; ++i) {
    if (!ends(machine.field[i].name) || !ends(machine.field[i].value)) return false;
  }
  return true;
}

void clamp_gpu_state(gantry_sim_gpu_state& gpu) {
  if (gpu.mig_count > GANTRY_SIM_MAX_MIG_INSTANCES) gpu.mig_count = GANTRY_SIM_MAX_MIG_INSTANCES;
  for (auto& instance : gpu.mig) {
    if (instance.profile >= GANTRY_SIM_MAX_MIG_PROFILES) instance.profile = 0;
    if (instance.ci_count > GANTRY_SIM_MAX_MIG_INSTANCES) {
      instance.ci_count = GANTRY_SIM_MAX_MIG_INSTANCES;
    }
    for (auto& compute : instance.ci) compute.uuid[sizeof compute.uuid - 1] = '\0';
  }
}

void clamp_state(gantry_sim_state& state) {
  if (state.fault_count > GANTRY_SIM_MAX_FAULTS) state.fault_count = GANTRY_SIM_MAX_FAULTS;
  for (auto& fault : state.fault) fault.function[sizeof fault.function - 1] = '\0';
  for (auto& gpu : state.gpu) clamp_gpu_state(gpu);
}

}  // namespace gantry::sim
