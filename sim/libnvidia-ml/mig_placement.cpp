// SPDX-License-Identifier: Apache-2.0
// Which slices are taken, and how many more instances fit.

#include "sim/libnvidia-ml/mig_placement_internal.hpp"

namespace gantry::sim::nvml {

uint32_t memory_slices(const gantry_sim_gpu& card) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < card.mig_profile_count; ++i) {
    if (card.mig_profile[i].memory_slices > most) most = card.mig_profile[i].memory_slices;
  }
  return most;
}

uint32_t compute_slices(const gantry_sim_gpu& card) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < card.mig_profile_count; ++i) {
    if (card.mig_profile[i].slices > most) most = card.mig_profile[i].slices;
  }
  return most;
}

uint32_t taken_slices(const gantry_sim_gpu& card, const gantry_sim_gpu_state& state) {
  uint32_t taken = 0;
  for (const auto& instance : state.mig) {
    const auto* profile = instance.used == 0 ? nullptr : profile_of(card, instance);
    if (profile != nullptr) taken |= slice_mask(instance.placement, profile->memory_slices);
  }
  return taken;
}

namespace {

constexpr uint32_t gantry_sim_mig_profile::*kShared[] = {
    &gantry_sim_mig_profile::slices, &gantry_sim_mig_profile::decoders,
    &gantry_sim_mig_profile::encoders, &gantry_sim_mig_profile::jpegs,
    &gantry_sim_mig_profile::ofas};

// What instances use of the card, or the card has: compute slices and media engines. The card has
// what all instances of one profile use. So there is one +me, and beside +me.all only -me.
struct Resources {
  uint32_t amount[sizeof kShared / sizeof kShared[0]] = {};

  void add(const gantry_sim_mig_profile& profile) {
    for (size_t i = 0; i < sizeof kShared / sizeof kShared[0]; ++i)
      amount[i] += profile.*kShared[i];
  }
  bool has_room(const Resources& used, const gantry_sim_mig_profile& profile) const {
    for (size_t i = 0; i < sizeof kShared / sizeof kShared[0]; ++i) {
      const uint32_t wanted = profile.*kShared[i];
      if (wanted > 0 && used.amount[i] + wanted > amount[i]) return false;
    }
    return true;
  }
};

Resources resources_of(const gantry_sim_gpu& card) {
  Resources most;
  for (uint32_t p = 0; p < card.mig_profile_count; ++p) {
    for (size_t i = 0; i < sizeof kShared / sizeof kShared[0]; ++i) {
      const auto& profile = card.mig_profile[p];
      const uint32_t has = profile.instances * (profile.*kShared[i]);
      if (has > most.amount[i]) most.amount[i] = has;
    }
  }
  return most;
}

}  // namespace

uint32_t remaining_instances(const gantry_sim_gpu& card, const gantry_sim_gpu_state& state,
                             const gantry_sim_mig_profile& profile) {
  const Resources all = resources_of(card);
  Resources used;
  uint32_t same = 0;
  for (const auto& instance : state.mig) {
    const auto* other = instance.used == 0 ? nullptr : profile_of(card, instance);
    if (other == nullptr) continue;
    used.add(*other);
    if (other == &profile) ++same;
  }
  uint32_t taken = taken_slices(card, state);
  uint32_t more = 0;
  while (same + more < profile.instances && all.has_room(used, profile)) {
    uint32_t start = 0;
    if (!free_placement(profile, taken, start)) break;
    taken |= slice_mask(start, profile.memory_slices);
    used.add(profile);
    ++more;
  }
  return more;
}

bool free_placement(const gantry_sim_mig_profile& profile, uint32_t taken, uint32_t& start) {
  for (uint32_t i = 0; i < profile.placement_count; ++i) {
    if ((slice_mask(profile.placement_start[i], profile.memory_slices) & taken) != 0) continue;
    start = profile.placement_start[i];
    return true;
  }
  return false;
}

bool is_compute_place_free(const gantry_sim_mig_instance& instance, uint32_t start,
                           uint32_t slices) {
  for (uint32_t i = 0; i < instance.ci_count; ++i) {
    const auto& other = instance.ci[i];
    if (start < other.start + other.slices && other.start < start + slices) return false;
  }
  return true;
}

uint32_t compute_alignment(uint32_t slices) {
  return slices <= 2 ? slices : slices <= 4 ? 4 : 8;
}

bool free_compute_place(const gantry_sim_mig_instance& instance, uint32_t slices_of_gi,
                        uint32_t slices, uint32_t& start) {
  const uint32_t steps[] = {compute_alignment(slices), 1};
  for (const uint32_t step : steps) {
    for (start = 0; start + slices <= slices_of_gi; start += step) {
      if (is_compute_place_free(instance, start, slices)) return true;
    }
  }
  return false;
}

uint32_t remaining_computes(const gantry_sim_mig_instance& instance, uint32_t slices_of_gi,
                            uint32_t slices) {
  gantry_sim_mig_instance filled = instance;
  uint32_t more = 0;
  uint32_t start = 0;
  while (filled.ci_count < GANTRY_SIM_MAX_MIG_INSTANCES &&
         free_compute_place(filled, slices_of_gi, slices, start)) {
    auto& compute = filled.ci[filled.ci_count++];
    compute.start = start;
    compute.slices = slices;
    ++more;
  }
  return more;
}

}  // namespace gantry::sim::nvml
