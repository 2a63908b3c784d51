// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/mig.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kMinorsPerInstance = 9;  // its own and eight compute instances
constexpr std::uint32_t kFirstMinor = 3;         // 1 is config, 2 is monitor
constexpr std::uint32_t kGpusInMinors = 32;

constexpr std::array<std::string_view, GANTRY_SIM_MIG_FUNCTIONS> kMigFunctions = {
    "nvmlDeviceSetMigMode",
    "nvmlDeviceCreateGpuInstance",
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceDestroy",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
    "nvmlComputeInstanceDestroy"};

std::uint32_t memory_slices(const gantry_sim_gpu& gpu) {
  std::uint32_t most = 1;
  for (std::uint32_t i = 0; i < gpu.mig_profile_count; ++i)
    most = std::max(most, gpu.mig_profile[i].memory_slices);
  return most;
}

std::uint32_t compute_slices(const gantry_sim_gpu& gpu) {
  std::uint32_t most = 1;
  for (std::uint32_t i = 0; i < gpu.mig_profile_count; ++i)
    most = std::max(most, gpu.mig_profile[i].slices);
  return most;
}

// The driver's numbers: the whole card is 0, its halves are 1 and 2, quarters 3..., eighths 7...
std::uint32_t instance_id(const gantry_sim_gpu& gpu, const gantry_sim_mig_profile& profile,
                          std::uint32_t placement) {
  const auto size = std::max(profile.memory_slices, 1U);
  return memory_slices(gpu) / size - 1 + placement / size;
}

// Seen on A30 and RTX PRO 6000, cards with four compute slices: the first place first. Seen on
// A100: the upper half fills first, there from its last slice for 1g and 2g, then upwards.
std::vector<std::uint32_t> placement_order(const gantry_sim_gpu& gpu,
                                           const gantry_sim_mig_profile& profile) {
  std::vector<std::uint32_t> starts(profile.placement_start,
                                    profile.placement_start + profile.placement_count);
  std::sort(starts.begin(), starts.end());
  if (starts.size() < 2 || compute_slices(gpu) <= 4) return starts;
  const auto last = starts.back();
  starts.pop_back();
  std::stable_partition(starts.begin(), starts.end(),
                        [half = memory_slices(gpu) / 2](auto start) { return start >= half; });
  starts.insert(starts.begin(), last);
  return starts;
}

bool overlaps(const gantry_sim_gpu& gpu, const gantry_sim_mig_instance& instance,
              std::uint32_t start, std::uint32_t size) {
  const auto other_size = gpu.mig_profile[instance.profile].memory_slices;
  return start < instance.placement + other_size && instance.placement < start + size;
}

bool is_free(const gantry_sim_gpu& gpu, const gantry_sim_gpu_state& state,
             const gantry_sim_mig_profile& profile, std::uint32_t start) {
  return std::none_of(std::begin(state.mig), std::end(state.mig), [&](const auto& instance) {
    return instance.used != 0 && overlaps(gpu, instance, start, profile.memory_slices);
  });
}

std::uint32_t used_of(const gantry_sim_gpu_state& state, std::uint32_t profile) {
  return static_cast<std::uint32_t>(std::count_if(
      std::begin(state.mig), std::end(state.mig),
      [&](const auto& instance) { return instance.used != 0 && instance.profile == profile; }));
}

std::uint32_t used_slices(const gantry_sim_gpu& gpu, const gantry_sim_gpu_state& state) {
  std::uint32_t slices = 0;
  for (const auto& instance : state.mig) {
    if (instance.used != 0) slices += gpu.mig_profile[instance.profile].slices;
  }
  return slices;
}

// Stable, so that the same machine has the same instances every time: FNV-1a over what it is.
std::string instance_uuid(const gantry_sim_gpu& gpu, std::uint32_t gi, std::uint32_t ci,
                          std::uint32_t driver_major) {
  if (driver_major < 470) return fmt::format("MIG-{}/{}/{}", gpu.uuid, gi, ci);
  auto hash = [&](std::uint64_t seed) {
    std::uint64_t value = 1469598103934665603ULL ^ seed;
    for (const char c : fmt::format("{}/{}/{}", gpu.uuid, gi, ci)) {
      value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
    return value;
  };
  const auto high = hash(1);
  const auto low = hash(2);
  return fmt::format("MIG-{:08x}-{:04x}-5{:03x}-{:04x}-{:012x}", high >> 32U,
                     (high >> 16U) & 0xffffU, high & 0xfffU, 0x8000U | ((low >> 48U) & 0x3fffU),
                     low & 0xffffffffffffULL);
}

void number_mig_devices(gantry_sim_gpu_state& state) {
  std::uint32_t index = 0;
  for (std::uint32_t gi = 0; gi < kMigInstanceIds; ++gi) {
    for (auto& instance : state.mig) {
      if (instance.used == 0 || instance.gi_id != gi) continue;
      for (std::uint32_t i = 0; i < instance.ci_count; ++i) instance.ci[i].mig_index = index++;
    }
  }
}

Result<std::uint32_t> choose_placement(const gantry_sim_gpu& gpu, const gantry_sim_gpu_state& state,
                                       const gantry_sim_mig_profile& profile,
                                       const MigRequest& request) {
  for (const auto start : placement_order(gpu, profile)) {
    if (request.placement && *request.placement != start) continue;
    if (is_free(gpu, state, profile, start)) return start;
  }
  if (request.placement) {
    return Error(
        Errc::Busy,
        fmt::format(
            "{} cannot be placed at {}: the place is taken, or the profile cannot start there",
            profile.name, *request.placement));
  }
  return Error(Errc::Busy, fmt::format("no room for another {}", profile.name));
}

// The larger ones take the first places, as with mig-parted.
std::uint32_t compute_start(const std::vector<std::uint32_t>& parts, std::uint32_t which) {
  std::uint32_t start = 0;
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i] > parts[which] || (parts[i] == parts[which] && i < which)) start += parts[i];
  }
  return start;
}

}  // namespace

Status add_mig_instance(const gantry_sim_gpu& gpu, gantry_sim_gpu_state& state,
                        const MigRequest& request, std::uint32_t driver_major) {
  const auto count = std::min<std::uint32_t>(gpu.mig_profile_count, GANTRY_SIM_MAX_MIG_PROFILES);
  std::uint32_t index = 0;
  while (index < count && request.profile != gpu.mig_profile[index].name &&
         request.profile != fmt::to_string(gpu.mig_profile[index].id)) {
    ++index;
  }
  if (index == count) {
    return Error(Errc::NotFound,
                 fmt::format("{} has no MIG profile {}; `nvidia-smi mig -lgip` lists them",
                             gpu.name, request.profile));
  }
  const auto& profile = gpu.mig_profile[index];
  auto* slot = std::find_if(std::begin(state.mig), std::end(state.mig),
                            [](const auto& instance) { return instance.used == 0; });
  if (slot == std::end(state.mig) || used_of(state, index) >= profile.instances ||
      used_slices(gpu, state) + profile.slices > compute_slices(gpu)) {
    return Error(Errc::Busy, fmt::format("no room for another {}", profile.name));
  }
  GANTRY_TRY(const std::uint32_t start, choose_placement(gpu, state, profile, request));

  auto parts = request.compute_slices;
  if (parts.empty()) parts.push_back(profile.slices);
  if (std::accumulate(parts.begin(), parts.end(), 0U) > profile.slices) {
    return Error(Errc::Invalid,
                 fmt::format("{} has only {} compute slices", profile.name, profile.slices));
  }
  *slot = {};
  slot->used = 1;
  slot->profile = index;
  slot->placement = start;
  slot->gi_id = instance_id(gpu, profile, start);
  slot->ci_count = static_cast<std::uint32_t>(parts.size());
  for (std::uint32_t i = 0; i < slot->ci_count; ++i) {
    slot->ci[i].ci_id = i;
    slot->ci[i].start = compute_start(parts, i);
    slot->ci[i].slices = parts[i];
    const auto uuid = instance_uuid(gpu, slot->gi_id, i, driver_major);
    std::memcpy(slot->ci[i].uuid, uuid.c_str(), std::min(uuid.size() + 1, sizeof slot->ci[i].uuid));
    slot->ci[i].uuid[sizeof slot->ci[i].uuid - 1] = '\0';
  }
  ++state.mig_count;
  number_mig_devices(state);
  return {};
}

std::optional<std::uint32_t> mig_function(std::string_view name) {
  const auto* found = std::find(kMigFunctions.begin(), kMigFunctions.end(), name);
  if (found == kMigFunctions.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - kMigFunctions.begin());
}

std::string_view mig_function_name(std::uint32_t number) {
  return number < kMigFunctions.size() ? kMigFunctions[number] : "?";
}

void clear_mig_instances(gantry_sim_gpu_state& state) {
  state.mig_count = 0;
  for (auto& instance : state.mig) instance = {};
}

std::uint32_t gpu_instance_minor(std::uint32_t gpu_minor, std::uint32_t gpu_instance) {
  return kFirstMinor + (gpu_minor * kMigInstanceIds + gpu_instance) * kMinorsPerInstance;
}

std::uint32_t compute_instance_minor(std::uint32_t gpu_minor, std::uint32_t gpu_instance,
                                     std::uint32_t compute_instance) {
  return gpu_instance_minor(gpu_minor, gpu_instance) + 1 + compute_instance;
}

std::string mig_minors_file() {
  std::string text = "config 1\nmonitor 2\n";
  for (std::uint32_t gpu = 0; gpu < kGpusInMinors; ++gpu) {
    for (std::uint32_t gi = 0; gi < kMigInstanceIds; ++gi) {
      text += fmt::format("gpu{}/gi{}/access {}\n", gpu, gi, gpu_instance_minor(gpu, gi));
      for (std::uint32_t ci = 0; ci + 1 < kMinorsPerInstance; ++ci) {
        text += fmt::format("gpu{}/gi{}/ci{}/access {}\n", gpu, gi, ci,
                            compute_instance_minor(gpu, gi, ci));
      }
    }
  }
  return text;
}

}  // namespace gantry::sim
