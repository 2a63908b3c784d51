// SPDX-License-Identifier: Apache-2.0
// The devices of this process, as cuInit finds them.
#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/visible.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

constexpr size_t kMaxCandidates = static_cast<size_t>(GANTRY_SIM_MAX_GPUS) *
                                  GANTRY_SIM_MAX_MIG_INSTANCES * GANTRY_SIM_MAX_MIG_INSTANCES;
constexpr uint64_t kMiB = 1U << 20U;

struct DeviceCandidates {
  gantry_sim_gpu_state state[GANTRY_SIM_MAX_GPUS];  // holds the UUIDs that candidates point to
  Candidate candidate[kMaxCandidates];
  size_t count;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The 16 bytes of "GPU-xxxxxxxx-..." or "MIG-...".
CUuuid uuid_bytes(const char* text) {
  CUuuid uuid{};
  size_t nibbles = 0;
  for (const char* at = strlen(text) > 4 ? text + 4 : text; *at != '\0' && nibbles < 32; ++at) {
    const int digit = hex_digit(*at);
    if (digit < 0) continue;
    char& byte = uuid.bytes[nibbles / 2];
    byte = static_cast<char>(static_cast<unsigned char>(byte) << 4U | static_cast<unsigned>(digit));
    ++nibbles;
  }
  return uuid;
}

// A container has only the nodes of its own instances: those of the GPU instance and of the compute
// instance. They are opened for reading, as nvidia-modprobe makes them without the right to write.
// Their minors are consecutive: 15 GPU instances on a GPU, 9 nodes for each.
bool instance_visible(const gantry_sim_gpu& card, uint32_t gi, uint32_t ci) {
  const uint32_t minor = 3 + card.minor * 135 + gi * 9;
  char node[64];
  snprintf(node, sizeof node, "/dev/nvidia-caps/nvidia-cap%u", minor);
  if (device_error(node, driver.machine->caps_major, minor, Access::Read) != 0) return false;
  snprintf(node, sizeof node, "/dev/nvidia-caps/nvidia-cap%u", minor + 1 + ci);
  return device_error(node, driver.machine->caps_major, minor + 1 + ci, Access::Read) == 0;
}

void add_candidates(DeviceCandidates& found, uint32_t gpu) {
  const gantry_sim_gpu& card = driver.machine->gpu[gpu];
  gantry_sim_gpu_state& state = found.state[gpu];
  gantry_sim_read_gpu_state(gpu, &state);
  if (card.excluded != 0 || state.lost != 0 || gantry_sim_gpu_visible(gpu) == 0) return;
  const uint64_t speed = static_cast<uint64_t>(card.cores) * card.clock_sm_max;
  if (state.mig_current == 0) {
    found.candidate[found.count++] = {gpu, -1, -1, card.uuid, nullptr, speed};
    return;
  }
  for (const gantry_sim_mig_instance& instance : state.mig) {
    if (instance.used == 0 || instance.profile >= card.mig_profile_count) continue;
    for (uint32_t i = 0; i < instance.ci_count && i < GANTRY_SIM_MAX_MIG_INSTANCES; ++i) {
      const uint32_t ci = instance.ci[i].ci_id;
      if (!instance_visible(card, instance.gi_id, ci)) continue;
      found.candidate[found.count++] = {gpu,
                                        static_cast<int32_t>(instance.gi_id),
                                        static_cast<int32_t>(ci),
                                        card.uuid,
                                        instance.ci[i].uuid,
                                        speed};
    }
  }
}

uint64_t whole_gpu_bytes(uint32_t gpu, const gantry_sim_gpu& card) {
  const uint64_t said =
      strtoull(gantry_sim_field(static_cast<int32_t>(gpu), "cuda.total_bytes"), nullptr, 10);
  if (said != 0) return said;
  const uint32_t reserved =
      card.memory_reserved_mib < card.memory_total_mib ? card.memory_reserved_mib : 0;
  return static_cast<uint64_t>(card.memory_total_mib - reserved) * kMiB;
}

void fill_instance(Device& device, const gantry_sim_gpu_state& state) {
  for (const gantry_sim_mig_instance& instance : state.mig) {
    if (instance.used == 0 || static_cast<int32_t>(instance.gi_id) != device.gi) continue;
    const gantry_sim_mig_profile& profile = device.card->mig_profile[instance.profile];
    device.total_bytes = static_cast<uint64_t>(profile.memory_mib) * kMiB;
    for (uint32_t i = 0; i < instance.ci_count && i < GANTRY_SIM_MAX_MIG_INSTANCES; ++i) {
      if (static_cast<int32_t>(instance.ci[i].ci_id) != device.ci) continue;
      const uint32_t slices = instance.ci[i].slices;
      const bool part = slices != 0 && slices < profile.slices;
      device.multiprocessors =
          part ? profile.multiprocessors * slices / profile.slices : profile.multiprocessors;
      char share[16] = "";
      if (part) snprintf(share, sizeof share, "%uc.", slices);
      snprintf(device.name, sizeof device.name, "%s MIG %s%s", device.card->name, share,
               profile.name);
      device.uuid = uuid_bytes(instance.ci[i].uuid);
    }
  }
}

void fill_device(Device& device, const Candidate& candidate, const gantry_sim_gpu_state& state) {
  device = Device{};
  device.gpu = candidate.gpu;
  device.gi = candidate.gi;
  device.ci = candidate.ci;
  device.card = &driver.machine->gpu[candidate.gpu];
  device.multiprocessors = device.card->multiprocessors;
  device.total_bytes = whole_gpu_bytes(candidate.gpu, *device.card);
  device.gpu_uuid = uuid_bytes(device.card->uuid);
  device.uuid = device.gpu_uuid;
  snprintf(device.name, sizeof device.name, "%s", device.card->name);
  if (candidate.gi >= 0) fill_instance(device, state);
}

}  // namespace

CUresult find_devices() {
  auto* found = static_cast<DeviceCandidates*>(calloc(1, sizeof(DeviceCandidates)));
  if (found == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t gpu = 0; gpu < driver.machine->gpu_count; ++gpu) add_candidates(*found, gpu);
  size_t chosen[GANTRY_SIM_MAX_GPUS];
  const size_t count =
      choose_visible(found->candidate, found->count, getenv("CUDA_VISIBLE_DEVICES"),
                     getenv("CUDA_DEVICE_ORDER"), chosen, GANTRY_SIM_MAX_GPUS);
  for (size_t i = 0; i < count; ++i) {
    const Candidate& candidate = found->candidate[chosen[i]];
    fill_device(driver.device[i], candidate, found->state[candidate.gpu]);
  }
  driver.device_count = static_cast<int>(count);
  free(found);
  return count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

}  // namespace gantry::sim::cuda
