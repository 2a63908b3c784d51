// SPDX-License-Identifier: Apache-2.0
//
// MIG profiles and instances of a GPU, in the order nvidia-smi lists them.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

inline constexpr unsigned kMaxInstances = 16;

struct GpuProfile {
  Text name;  // "1g.18gb+me"
  nvmlGpuInstanceProfileInfo_t info = {};
};

struct GpuProfiles {
  unsigned count = 0;
  GpuProfile rows[NVML_GPU_INSTANCE_PROFILE_COUNT];
};

struct ComputeProfile {
  Text name;  // "1c.3g.20gb"
  nvmlComputeInstanceProfileInfo_t info = {};
};

struct ComputeProfiles {
  unsigned count = 0;
  ComputeProfile rows[NVML_COMPUTE_INSTANCE_PROFILE_COUNT];
};

/// Fewest slices first, then NVML's own order.
void read_profiles(const Gpu& gpu, GpuProfiles& out);
void read_profiles(const Gpu& gpu, nvmlGpuInstance_t instance, ComputeProfiles& out);

/// Instances of one profile; returns how many.
unsigned gpu_instances(const Gpu& gpu, unsigned profile_id, nvmlGpuInstance_t* out);
unsigned compute_instances(const Gpu& gpu, nvmlGpuInstance_t instance, unsigned profile_id,
                           nvmlComputeInstance_t* out);

nvmlGpuInstanceInfo_t instance_info(const Gpu& gpu, nvmlGpuInstance_t instance);
nvmlComputeInstanceInfo_t instance_info(const Gpu& gpu, nvmlComputeInstance_t instance);

/// The profile that takes all of a GPU instance's slices; null when it has none.
const ComputeProfile* default_profile(const ComputeProfiles& profiles);

/// What follows `mig` on the command line.
struct MigOptions {
  const char* gpus = nullptr;
  const char* gpu_instances = nullptr;
  const char* compute_instances = nullptr;
  const char* profiles = nullptr;  // of -cgi and -cci
  bool with_compute = false;       // -C
};

/// Whether `id` is in the list "1,2"; a null list holds every id.
bool is_listed(const char* list, unsigned id);

int create_gpu_instances(Session& session, const MigOptions& options);
int create_compute_instances(Session& session, const MigOptions& options);
int destroy_gpu_instances(Session& session, const MigOptions& options);
int destroy_compute_instances(Session& session, const MigOptions& options);

}  // namespace smi
