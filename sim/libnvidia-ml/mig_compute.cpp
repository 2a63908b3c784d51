// SPDX-License-Identifier: Apache-2.0
// Compute instances: which compute slices of a GPU instance they have, and their names.

#include "sim/libnvidia-ml/mig_calls_internal.hpp"
#include "sim/libnvidia-ml/mig_placement_internal.hpp"
#include "sim/libnvidia-ml/state_change_internal.hpp"
#include "sim/libnvidia-ml/usage_internal.hpp"

#include <stdio.h>
#include <string.h>

using namespace gantry::sim::nvml;

namespace {

struct ComputeChange {
  const gantry_sim_gpu* card;
  uint32_t slices;                                  // of a new one
  const nvmlComputeInstancePlacement_t* placement;  // or nullptr: the first free place
  uint32_t gi_id;
  uint32_t ci_id;  // in or out
};

uint64_t fnv(uint64_t seed, const char* text) {
  uint64_t value = 1469598103934665603ULL ^ seed;
  for (; *text != '\0'; ++text)
    value = (value ^ static_cast<unsigned char>(*text)) * 1099511628211ULL;
  return value;
}

// The same instance of the same card always has the same name, as on real cards.
void print_mig_uuid(const gantry_sim_gpu& card, uint32_t gi, uint32_t ci, char (&out)[96]) {
  char text[128];
  snprintf(text, sizeof text, "%s/%u/%u", card.uuid, gi, ci);
  if (session().branch < 470) {
    snprintf(out, sizeof out, "MIG-%.80s", text);
    return;
  }
  const uint64_t high = fnv(1, text);
  const uint64_t low = fnv(2, text);
  snprintf(out, sizeof out, "MIG-%08x-%04x-5%03x-%04x-%012llx",
           static_cast<unsigned int>(high >> 32), static_cast<unsigned int>((high >> 16) & 0xFFFF),
           static_cast<unsigned int>(high & 0xFFF),
           static_cast<unsigned int>(0x8000 | ((low >> 48) & 0x3FFF)),
           static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFULL));
}

bool id_taken(const gantry_sim_mig_instance& instance, uint32_t ci_id) {
  for (uint32_t i = 0; i < instance.ci_count; ++i) {
    if (instance.ci[i].ci_id == ci_id) return true;
  }
  return false;
}

nvmlReturn_t choose_compute_start(const gantry_sim_mig_instance& instance, uint32_t slices_of_gi,
                                  const ComputeChange& change, uint32_t& start) {
  if (change.placement == nullptr) {
    return free_compute_place(instance, slices_of_gi, change.slices, start)
               ? NVML_SUCCESS
               : NVML_ERROR_INSUFFICIENT_RESOURCES;
  }
  start = change.placement->start;
  if (change.placement->size != change.slices || start % compute_alignment(change.slices) != 0 ||
      start + change.slices > slices_of_gi) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  return is_compute_place_free(instance, start, change.slices) ? NVML_SUCCESS
                                                               : NVML_ERROR_INSUFFICIENT_RESOURCES;
}

nvmlReturn_t add_compute(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  auto& change = *static_cast<ComputeChange*>(argument);
  auto* instance = find_instance(value, change.gi_id);
  const auto* profile = instance == nullptr ? nullptr : profile_of(*change.card, *instance);
  if (profile == nullptr) return NVML_ERROR_NOT_FOUND;
  if (!compute_profile_fits(profile->slices, change.slices)) return NVML_ERROR_NOT_SUPPORTED;
  if (instance->ci_count >= GANTRY_SIM_MAX_MIG_INSTANCES) return NVML_ERROR_INSUFFICIENT_RESOURCES;
  uint32_t start = 0;
  if (const auto result = choose_compute_start(*instance, profile->slices, change, start);
      result != NVML_SUCCESS) {
    return result;
  }
  uint32_t ci_id = 0;
  while (id_taken(*instance, ci_id)) ++ci_id;
  auto& compute = instance->ci[instance->ci_count++];
  compute = {};
  compute.ci_id = change.ci_id = ci_id;
  compute.start = start;
  compute.slices = change.slices;
  print_mig_uuid(*change.card, change.gi_id, ci_id, compute.uuid);
  number_mig_devices(value);
  announce = true;
  return NVML_SUCCESS;
}

nvmlReturn_t remove_compute(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  const auto& change = *static_cast<ComputeChange*>(argument);
  auto* instance = find_instance(value, change.gi_id);
  if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
  for (uint32_t i = 0; i < instance->ci_count; ++i) {
    if (instance->ci[i].ci_id != change.ci_id) continue;
    memmove(&instance->ci[i], &instance->ci[i + 1],
            (instance->ci_count - i - 1) * sizeof instance->ci[0]);
    --instance->ci_count;
    number_mig_devices(value);
    announce = true;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t create_compute(nvmlGpuInstance_t instance, unsigned int profile_id,
                            const nvmlComputeInstancePlacement_t* placement,
                            nvmlComputeInstance_t* out, MigCall& call) {
  InstanceTarget target{};
  call.value = static_cast<int32_t>(profile_id);
  if (const auto result = resolve_instance(instance, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  ComputeChange change{target.card, compute_profile_slices(profile_id), placement, target.gi_id, 0};
  if (const auto result = change_gpu(target.gpu, add_compute, &change); result != NVML_SUCCESS) {
    return result;
  }
  *out = compute_handle(target.gpu, target.gi_id, change.ci_id);
  call.ci_id = static_cast<int32_t>(change.ci_id);
  return NVML_SUCCESS;
}

nvmlReturn_t destroy_compute(nvmlComputeInstance_t compute) {
  InstanceTarget target{};
  if (const auto result = resolve_compute(compute, target); result != NVML_SUCCESS) return result;
  const Target device{target.gpu, target.card, true, target.gi_id, target.ci_id};
  for (const auto& use : MemoryUses(device)) {
    if (use.ci_id == static_cast<int32_t>(target.ci_id)) return NVML_ERROR_IN_USE;
  }
  ComputeChange change{target.card, 0, nullptr, target.gi_id, target.ci_id};
  return change_gpu(target.gpu, remove_compute, &change);
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance,
                                                                unsigned int profile_id,
                                                                nvmlComputeInstance_t* compute) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_CREATE_COMPUTE, nvmlGpuInstanceCreateComputeInstance, instance);
  return end_mig_call(call, create_compute(instance, profile_id, nullptr, compute, call));
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t instance, unsigned int profile_id,
    const nvmlComputeInstancePlacement_t* placement, nvmlComputeInstance_t* compute) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_CREATE_COMPUTE_PLACED,
                   nvmlGpuInstanceCreateComputeInstanceWithPlacement, instance);
  if (placement == nullptr) return end_mig_call(call, NVML_ERROR_INVALID_ARGUMENT);
  return end_mig_call(call, create_compute(instance, profile_id, placement, compute, call));
}

GANTRY_EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_DESTROY_COMPUTE, nvmlComputeInstanceDestroy, compute);
  return end_mig_call(call, destroy_compute(compute));
}
