// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/mig_internal.hpp"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

namespace gantry::sim::nvml {
namespace {

struct InstanceTables {
  nvmlGpuInstance_st instance[GANTRY_SIM_MAX_GPUS][GANTRY_SIM_GI_IDS];
  nvmlComputeInstance_st compute[GANTRY_SIM_MAX_GPUS][GANTRY_SIM_GI_IDS][GANTRY_SIM_CI_IDS];
};
constinit InstanceTables instance_tables{};

// The MIG device the machine has at this place, if there is one and it can be seen.
nvmlDevice_t mig_at(const Target& target, const gantry_sim_gpu_state& now, uint32_t place) {
  for (const auto& instance : now.mig) {
    if (instance.used == 0 || profile_of(*target.card, instance) == nullptr) continue;
    for (uint32_t i = 0; i < instance.ci_count; ++i) {
      const auto& compute = instance.ci[i];
      if (compute.mig_index == place && mig_visible(target.gpu, instance.gi_id, compute.ci_id)) {
        return mig_handle(target.gpu, instance.gi_id, compute.ci_id);
      }
    }
  }
  return nullptr;
}

nvmlReturn_t check_gpu(uint32_t gpu, InstanceTarget& out) {
  if (gpu >= machine().gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
  if (session().access[gpu] == NVML_ERROR_NOT_FOUND) return NVML_ERROR_INVALID_ARGUMENT;
  if (__atomic_load_n(&state().gpu[gpu].lost, __ATOMIC_RELAXED) != 0) return NVML_ERROR_GPU_IS_LOST;
  out.gpu = gpu;
  out.card = &machine().gpu[gpu];
  return NVML_SUCCESS;
}

}  // namespace

const gantry_sim_mig_instance* find_instance(const gantry_sim_gpu_state& state, uint32_t gi_id) {
  for (const auto& instance : state.mig) {
    if (instance.used != 0 && instance.gi_id == gi_id) return &instance;
  }
  return nullptr;
}

gantry_sim_mig_instance* find_instance(gantry_sim_gpu_state& state, uint32_t gi_id) {
  const gantry_sim_gpu_state& same = state;
  return const_cast<gantry_sim_mig_instance*>(find_instance(same, gi_id));
}

void number_mig_devices(gantry_sim_gpu_state& state) {
  uint32_t index = 0;
  for (uint32_t gi = 0; gi < GANTRY_SIM_GI_IDS; ++gi) {
    for (auto& instance : state.mig) {
      if (instance.used == 0 || instance.gi_id != gi) continue;
      for (uint32_t i = 0; i < instance.ci_count; ++i) instance.ci[i].mig_index = index++;
    }
  }
}

const gantry_sim_mig_profile* profile_of(const gantry_sim_gpu& card,
                                         const gantry_sim_mig_instance& instance) {
  return instance.profile < card.mig_profile_count ? &card.mig_profile[instance.profile] : nullptr;
}

const gantry_sim_mig_profile* profile_by_id(const gantry_sim_gpu& card, uint32_t id) {
  for (uint32_t i = 0; i < card.mig_profile_count; ++i) {
    if (card.mig_profile[i].id == id) return &card.mig_profile[i];
  }
  return nullptr;
}

const gantry_sim_mig_profile* profile_by_number(const gantry_sim_gpu& card, uint32_t nvml_profile) {
  for (uint32_t i = 0; i < card.mig_profile_count; ++i) {
    if (card.mig_profile[i].nvml_profile == nvml_profile) return &card.mig_profile[i];
  }
  return nullptr;
}

bool mig_visible(uint32_t gpu, uint32_t gi_id, uint32_t ci_id) {
  if (has_capability(CAP_SYS_ADMIN)) return true;
  // The driver's numbers: 1 and 2 are config and monitor; then, for each GPU, 15 GPU instances of
  // 9: their own and eight compute instances.
  const uint32_t instance = 3 + (machine().gpu[gpu].minor * 15 + gi_id) * 9;
  const uint32_t numbers[] = {instance, instance + 1 + ci_id};
  for (const uint32_t number : numbers) {
    char node[48];
    snprintf(node, sizeof node, "/dev/nvidia-caps/nvidia-cap%u", number);
    if (device_error(node, machine().caps_major, number, Access::Read) != 0) return false;
  }
  return true;
}

bool find_mig(const Target& target, MigDevice& out) {
  const auto now = gpu_now(target.gpu);
  const auto* instance = find_instance(now, target.gi_id);
  if (instance == nullptr || profile_of(*target.card, *instance) == nullptr) return false;
  for (uint32_t i = 0; i < instance->ci_count; ++i) {
    const auto& compute = instance->ci[i];
    if (compute.ci_id != target.ci_id) continue;
    if (!mig_visible(target.gpu, target.gi_id, target.ci_id)) return false;
    out = {target.gpu,
           target.gi_id,
           target.ci_id,
           instance->profile,
           compute.slices,
           compute.mig_index,
           {}};
    memcpy(out.uuid, compute.uuid, sizeof out.uuid);
    return true;
  }
  return false;
}

// Visible devices are numbered without gaps.
nvmlDevice_t mig_with_index(const Target& target, uint32_t index) {
  const auto now = gpu_now(target.gpu);
  if (now.mig_current == 0) return nullptr;
  for (uint32_t place = 0; place < kMostMigDevices; ++place) {
    auto* const found = mig_at(target, now, place);
    if (found != nullptr && index-- == 0) return found;
  }
  return nullptr;
}

bool mig_index(const Target& mig, uint32_t& out) {
  const auto* const wanted = mig_handle(mig.gpu, mig.gi_id, mig.ci_id);
  for (uint32_t index = 0; index < kMostMigDevices; ++index) {
    const auto* const found = mig_with_index(mig, index);
    if (found == nullptr) return false;
    if (found != wanted) continue;
    out = index;
    return true;
  }
  return false;
}

void print_compute_profile(const gantry_sim_mig_profile& profile, uint32_t slices, char* out,
                           size_t size) {
  if (slices >= profile.slices) {
    snprintf(out, size, "%s", profile.name);
  } else {
    snprintf(out, size, "%uc.%s", slices, profile.name);
  }
}

void print_mig_name(const Target& target, const MigDevice& device, char* out, size_t size) {
  char profile[40];
  print_compute_profile(target.card->mig_profile[device.profile], device.slices, profile,
                        sizeof profile);
  snprintf(out, size, "%s MIG %s", target.card->name, profile);
}

nvmlGpuInstance_t instance_handle(uint32_t gpu, uint32_t gi_id) {
  return gi_id < GANTRY_SIM_GI_IDS ? &instance_tables.instance[gpu][gi_id] : nullptr;
}

nvmlComputeInstance_t compute_handle(uint32_t gpu, uint32_t gi_id, uint32_t ci_id) {
  if (gi_id >= GANTRY_SIM_GI_IDS || ci_id >= GANTRY_SIM_CI_IDS) return nullptr;
  return &instance_tables.compute[gpu][gi_id][ci_id];
}

bool place_of(nvmlGpuInstance_t handle, InstanceTarget& out) {
  size_t at = 0;
  if (!find_position(handle, &instance_tables.instance[0][0],
                     size_t{GANTRY_SIM_MAX_GPUS} * GANTRY_SIM_GI_IDS, at)) {
    return false;
  }
  out.gi_id = static_cast<uint32_t>(at % GANTRY_SIM_GI_IDS);
  out.gpu = static_cast<uint32_t>(at / GANTRY_SIM_GI_IDS);
  return true;
}

bool place_of(nvmlComputeInstance_t handle, InstanceTarget& out) {
  constexpr size_t kPerGpu = size_t{GANTRY_SIM_GI_IDS} * GANTRY_SIM_CI_IDS;
  size_t at = 0;
  if (!find_position(handle, &instance_tables.compute[0][0][0], GANTRY_SIM_MAX_GPUS * kPerGpu,
                     at)) {
    return false;
  }
  out.gi_id = static_cast<uint32_t>(at % kPerGpu / GANTRY_SIM_CI_IDS);
  out.ci_id = static_cast<uint32_t>(at % GANTRY_SIM_CI_IDS);
  out.gpu = static_cast<uint32_t>(at / kPerGpu);
  return true;
}

nvmlReturn_t resolve_instance(nvmlGpuInstance_t handle, InstanceTarget& out) {
  if (!place_of(handle, out)) return NVML_ERROR_INVALID_ARGUMENT;
  const auto checked = check_gpu(out.gpu, out);
  if (checked != NVML_SUCCESS) return checked;
  const auto now = gpu_now(out.gpu);
  return find_instance(now, out.gi_id) == nullptr ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

nvmlReturn_t resolve_compute(nvmlComputeInstance_t handle, InstanceTarget& out) {
  if (!place_of(handle, out)) return NVML_ERROR_INVALID_ARGUMENT;
  const auto checked = check_gpu(out.gpu, out);
  if (checked != NVML_SUCCESS) return checked;
  Target target{out.gpu, out.card, true, out.gi_id, out.ci_id};
  MigDevice device{};
  return find_mig(target, device) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

}  // namespace gantry::sim::nvml
