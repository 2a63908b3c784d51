// SPDX-License-Identifier: Apache-2.0
// MIG devices, GPU instances and compute instances as they are now.
#pragma once

#include "sim/libnvidia-ml/nvml_internal.hpp"

namespace gantry::sim::nvml {

// A MIG device: one compute instance in its GPU instance.
struct MigDevice {
  uint32_t gpu, gi_id, ci_id;
  uint32_t profile;  // index into mig_profile
  uint32_t slices;   // of the compute instance
  uint32_t mig_index;
  char uuid[96];
};

// How many MIG devices a GPU can have at most: compute instances in all GPU instances.
inline constexpr uint32_t kMostMigDevices =
    GANTRY_SIM_MAX_MIG_INSTANCES * GANTRY_SIM_MAX_MIG_INSTANCES;

// Whether this process may use it: it can open the capability nodes of both instances, as in a
// container that was given this instance, or it has administrator rights.
bool mig_visible(uint32_t gpu, uint32_t gi_id, uint32_t ci_id);
bool find_mig(const Target& target, MigDevice& out);
// The MIG device with this index among those that the process may use, or nullptr; and back.
nvmlDevice_t mig_with_index(const Target& target, uint32_t index);
bool mig_index(const Target& mig, uint32_t& out);
// "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "... MIG 1c.3g.20gb" for a part of an instance.
void print_mig_name(const Target& target, const MigDevice& device, char* out, size_t size);
// "1g.5gb" or "1c.3g.20gb".
void print_compute_profile(const gantry_sim_mig_profile& profile, uint32_t slices, char* out,
                           size_t size);

// The profile of an instance, or nullptr when the image names one the card does not have.
const gantry_sim_mig_profile* profile_of(const gantry_sim_gpu& card,
                                         const gantry_sim_mig_instance& instance);
const gantry_sim_mig_profile* profile_by_id(const gantry_sim_gpu& card, uint32_t id);
const gantry_sim_mig_profile* profile_by_number(const gantry_sim_gpu& card, uint32_t nvml_profile);

// The instance with this id, or nullptr.
const gantry_sim_mig_instance* find_instance(const gantry_sim_gpu_state& state, uint32_t gi_id);
gantry_sim_mig_instance* find_instance(gantry_sim_gpu_state& state, uint32_t gi_id);
// Gives each compute instance its place in nvmlDeviceGetMigDeviceHandleByIndex.
void number_mig_devices(gantry_sim_gpu_state& state);

// NVML_COMPUTE_INSTANCE_PROFILE_* and at the same time the id nvidia-smi shows, for a number of
// slices. NVML_COMPUTE_INSTANCE_PROFILE_COUNT when there is none.
uint32_t compute_profile_number(uint32_t slices);
uint32_t compute_profile_slices(uint32_t number);
// Whether instances of this size can hold compute instances of that size.
bool compute_profile_fits(uint32_t instance_slices, uint32_t slices);

struct InstanceTarget {
  uint32_t gpu;
  const gantry_sim_gpu* card;
  uint32_t gi_id, ci_id;
};
nvmlGpuInstance_t instance_handle(uint32_t gpu, uint32_t gi_id);
nvmlComputeInstance_t compute_handle(uint32_t gpu, uint32_t gi_id, uint32_t ci_id);
// Handle to numbers alone; false for a handle of nothing.
bool place_of(nvmlGpuInstance_t handle, InstanceTarget& out);
bool place_of(nvmlComputeInstance_t handle, InstanceTarget& out);
// Handle to ids; NOT_FOUND when the instance is gone.
nvmlReturn_t resolve_instance(nvmlGpuInstance_t handle, InstanceTarget& out);
nvmlReturn_t resolve_compute(nvmlComputeInstance_t handle, InstanceTarget& out);

}  // namespace gantry::sim::nvml
