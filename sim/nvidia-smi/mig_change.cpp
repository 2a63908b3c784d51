// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi mig -cgi, -cci, -dgi, -dci.
#include "sim/nvidia-smi/mig_profiles.hpp"
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

int exit_status(nvmlReturn_t error) {
  return error == NVML_ERROR_UNKNOWN ? 255 : error;
}

bool is_profile_named(const char* wanted, const Text& name, unsigned id) {
  unsigned number = 0;
  if (parse_number(wanted, &number)) return number == id;
  return name.is(wanted) || (strncmp(wanted, "MIG ", 4) == 0 && name.is(wanted + 4));
}

// "19", "1g.5gb", or either with ":START".
struct ProfileTuple {
  Text profile;
  bool placed = false;
  unsigned start = 0;
  bool sound = true;
};

ProfileTuple parse_tuple(const Text& text) {
  ProfileTuple tuple;
  const char* colon = strchr(text.c_str(), ':');
  tuple.profile.set("%.*s", static_cast<int>(colon != nullptr ? colon - text.c_str() : 250),
                    text.c_str());
  if (colon == nullptr) return tuple;
  tuple.placed = tuple.sound = parse_number(colon + 1, &tuple.start);
  return tuple;
}

nvmlReturn_t make_compute(const Nvml& nvml, nvmlGpuInstance_t instance,
                          const ComputeProfile& profile, const ProfileTuple& tuple,
                          nvmlComputeInstance_t* compute) {
  if (!tuple.placed)
    return call(nvml.nvmlGpuInstanceCreateComputeInstance, instance, profile.info.id, compute);
  const nvmlComputeInstancePlacement_t placement = {tuple.start, profile.info.sliceCount};
  return call(nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement, instance, profile.info.id,
              &placement, compute);
}

nvmlReturn_t create_compute(const Gpu& gpu, nvmlGpuInstance_t instance,
                            const ComputeProfile& profile, const ProfileTuple& tuple) {
  const unsigned parent = instance_info(gpu, instance).id;
  nvmlComputeInstance_t compute = nullptr;
  const nvmlReturn_t error = make_compute(gpu.session->nvml, instance, profile, tuple, &compute);
  if (error != NVML_SUCCESS) {
    printf(
        "Unable to create a compute instance on GPU %2u GPU instance ID %2u using profile %u: %s\n",
        gpu.index, parent, profile.info.id, words(*gpu.session, error));
    return error;
  }
  printf(
      "Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using profile "
      "MIG %s (ID "
      "%2u)\n",
      instance_info(gpu, compute).id, gpu.index, parent, profile.name.c_str(), profile.info.id);
  return NVML_SUCCESS;
}

nvmlReturn_t create_default_compute(const Gpu& gpu, nvmlGpuInstance_t instance) {
  ComputeProfiles profiles;
  read_profiles(gpu, instance, profiles);
  const ComputeProfile* profile = default_profile(profiles);
  return profile != nullptr ? create_compute(gpu, instance, *profile, {})
                            : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t create_instance(const Gpu& gpu, const GpuProfiles& profiles, const Text& text,
                             bool with_compute) {
  const ProfileTuple tuple = parse_tuple(text);
  const Text& wanted = tuple.profile;
  const GpuProfile* profile = nullptr;
  for (unsigned i = 0; i < profiles.count; ++i) {
    if (is_profile_named(wanted.c_str(), profiles.rows[i].name, profiles.rows[i].info.id))
      profile = &profiles.rows[i];
  }
  const Nvml& nvml = gpu.session->nvml;
  nvmlGpuInstance_t instance = nullptr;
  nvmlReturn_t error = NVML_ERROR_INVALID_ARGUMENT;
  if (profile != nullptr && tuple.placed) {
    nvmlGpuInstancePlacement_t possible[kMaxInstances] = {};
    unsigned count = kMaxInstances;
    call(nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2, gpu.handle, profile->info.id, possible,
         &count);
    const nvmlGpuInstancePlacement_t placement = {tuple.start, count > 0 ? possible[0].size : 1};
    error = call(nvml.nvmlDeviceCreateGpuInstanceWithPlacement, gpu.handle, profile->info.id,
                 &placement, &instance);
  } else if (profile != nullptr && tuple.sound) {
    error = call(nvml.nvmlDeviceCreateGpuInstance, gpu.handle, profile->info.id, &instance);
  }
  if (error != NVML_SUCCESS) {
    printf("Unable to create a GPU instance on GPU %2u using profile %s: %s\n", gpu.index,
           wanted.c_str(), words(*gpu.session, error));
    return error;
  }
  printf("Successfully created GPU instance ID %2u on GPU %2u using profile MIG %s (ID %2u)\n",
         instance_info(gpu, instance).id, gpu.index, profile->name.c_str(), profile->info.id);
  return with_compute ? create_default_compute(gpu, instance) : NVML_SUCCESS;
}

nvmlReturn_t create_on(const Gpu& gpu, const MigOptions& options) {
  GpuProfiles profiles;
  read_profiles(gpu, profiles);
  const char* list = options.profiles;
  Text tuple;
  while (next_item(&list, tuple)) {
    const nvmlReturn_t error = create_instance(gpu, profiles, tuple, options.with_compute);
    if (error != NVML_SUCCESS) return error;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t create_computes_in(const Gpu& gpu, nvmlGpuInstance_t instance, const char* list) {
  if (list == nullptr) return create_default_compute(gpu, instance);
  ComputeProfiles profiles;
  read_profiles(gpu, instance, profiles);
  Text item;
  while (next_item(&list, item)) {
    const ProfileTuple tuple = parse_tuple(item);
    const ComputeProfile* profile = nullptr;
    for (unsigned i = 0; i < profiles.count; ++i) {
      const ComputeProfile& row = profiles.rows[i];
      if (is_profile_named(tuple.profile.c_str(), row.name, row.info.id)) profile = &row;
    }
    const nvmlReturn_t error = profile != nullptr && tuple.sound
                                   ? create_compute(gpu, instance, *profile, tuple)
                                   : NVML_ERROR_INVALID_ARGUMENT;
    if (error != NVML_SUCCESS) return error;
  }
  return NVML_SUCCESS;
}

// Calls `visit` for every GPU instance asked for; stops at the first error.
template <class Visit>
nvmlReturn_t for_each_instance(const Gpu& gpu, const MigOptions& options, unsigned* found,
                               Visit visit) {
  GpuProfiles profiles;
  read_profiles(gpu, profiles);
  for (unsigned p = 0; p < profiles.count; ++p) {
    nvmlGpuInstance_t instances[kMaxInstances] = {};
    const unsigned count = gpu_instances(gpu, profiles.rows[p].info.id, instances);
    for (unsigned i = 0; i < count; ++i) {
      if (!is_listed(options.gpu_instances, instance_info(gpu, instances[i]).id)) continue;
      ++*found;
      const nvmlReturn_t error = visit(instances[i]);
      if (error != NVML_SUCCESS) return error;
    }
  }
  return NVML_SUCCESS;
}

nvmlReturn_t destroy_instance(const Gpu& gpu, nvmlGpuInstance_t instance) {
  const unsigned id = instance_info(gpu, instance).id;
  const nvmlReturn_t error = call(gpu.session->nvml.nvmlGpuInstanceDestroy, instance);
  if (error == NVML_SUCCESS) {
    printf("Successfully destroyed GPU instance ID %2u from GPU %2u\n", id, gpu.index);
  } else {
    printf("Unable to destroy GPU instance ID %2u from GPU %2u: %s\n", id, gpu.index,
           words(*gpu.session, error));
  }
  return error;
}

nvmlReturn_t destroy_computes_in(const Gpu& gpu, nvmlGpuInstance_t instance, const char* list,
                                 unsigned* found) {
  ComputeProfiles profiles;
  read_profiles(gpu, instance, profiles);
  const unsigned parent = instance_info(gpu, instance).id;
  for (unsigned p = 0; p < profiles.count; ++p) {
    nvmlComputeInstance_t computes[kMaxInstances] = {};
    const unsigned count = compute_instances(gpu, instance, profiles.rows[p].info.id, computes);
    for (unsigned c = 0; c < count; ++c) {
      const unsigned id = instance_info(gpu, computes[c]).id;
      if (!is_listed(list, id)) continue;
      ++*found;
      const nvmlReturn_t error = call(gpu.session->nvml.nvmlComputeInstanceDestroy, computes[c]);
      if (error != NVML_SUCCESS) {
        printf("Unable to destroy compute instance ID %2u from GPU %2u GPU instance ID %2u: %s\n",
               id, gpu.index, parent, words(*gpu.session, error));
        return error;
      }
      printf("Successfully destroyed compute instance ID %2u from GPU %2u GPU instance ID %2u\n",
             id, gpu.index, parent);
    }
  }
  return NVML_SUCCESS;
}

int finish_change(const Session& session, nvmlReturn_t error, unsigned found, const char* action,
                  const char* what) {
  if (error != NVML_SUCCESS) {
    printf("Failed to %s %s: %s\n", action, what, words(session, error));
    return exit_status(error);
  }
  if (found == 0) {
    printf("No %s found: Not Found\n", what);
    return NVML_ERROR_NOT_FOUND;
  }
  return kDone;
}

}  // namespace

int create_gpu_instances(Session& session, const MigOptions& options) {
  for (unsigned i = 0; i < session.count; ++i) {
    if (!mig_enabled(session.gpus[i])) continue;
    const nvmlReturn_t error = create_on(session.gpus[i], options);
    if (error != NVML_SUCCESS) return finish_change(session, error, 1, "create", "GPU instances");
  }
  return kDone;
}

int create_compute_instances(Session& session, const MigOptions& options) {
  unsigned found = 0;
  nvmlReturn_t error = NVML_SUCCESS;
  for (unsigned i = 0; i < session.count && error == NVML_SUCCESS; ++i) {
    const Gpu& gpu = session.gpus[i];
    if (!mig_enabled(gpu)) continue;
    error = for_each_instance(gpu, options, &found, [&](nvmlGpuInstance_t instance) {
      return create_computes_in(gpu, instance, options.profiles);
    });
  }
  if (error != NVML_SUCCESS)
    return finish_change(session, error, found, "create", "compute instances");
  return finish_change(session, error, found, "create", "GPU instances");
}

int destroy_gpu_instances(Session& session, const MigOptions& options) {
  unsigned found = 0;
  nvmlReturn_t error = NVML_SUCCESS;
  for (unsigned i = 0; i < session.count && error == NVML_SUCCESS; ++i) {
    const Gpu& gpu = session.gpus[i];
    if (!mig_enabled(gpu)) continue;
    error = for_each_instance(gpu, options, &found, [&](nvmlGpuInstance_t instance) {
      return destroy_instance(gpu, instance);
    });
  }
  return finish_change(session, error, found, "destroy", "GPU instances");
}

int destroy_compute_instances(Session& session, const MigOptions& options) {
  unsigned found = 0;
  nvmlReturn_t error = NVML_SUCCESS;
  for (unsigned i = 0; i < session.count && error == NVML_SUCCESS; ++i) {
    const Gpu& gpu = session.gpus[i];
    if (!mig_enabled(gpu)) continue;
    unsigned parents = 0;
    error = for_each_instance(gpu, options, &parents, [&](nvmlGpuInstance_t instance) {
      return destroy_computes_in(gpu, instance, options.compute_instances, &found);
    });
  }
  return finish_change(session, error, found, "destroy", "compute instances");
}

}  // namespace smi
