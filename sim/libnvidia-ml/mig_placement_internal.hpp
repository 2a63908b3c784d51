// SPDX-License-Identifier: Apache-2.0
// Which slices of a card and of its instances are taken, and which instances still fit.
#pragma once

#include "sim/libnvidia-ml/mig_internal.hpp"

namespace gantry::sim::nvml {

// How many memory slices the card has: 8, 4 on an A30, 12 on an RTX PRO 6000.
uint32_t memory_slices(const gantry_sim_gpu& card);
uint32_t compute_slices(const gantry_sim_gpu& card);  // 7 or 4
// Slices as bits.
inline uint32_t slice_mask(uint32_t start, uint32_t size) {
  return start > 15 || size > 16 ? 0xFFFFFFFFU : ((1U << size) - 1U) << start;
}
uint32_t taken_slices(const gantry_sim_gpu& card, const gantry_sim_gpu_state& state);
bool free_placement(const gantry_sim_mig_profile& profile, uint32_t taken, uint32_t& start);
// How many more instances of this profile could be created now.
uint32_t remaining_instances(const gantry_sim_gpu& card, const gantry_sim_gpu_state& state,
                             const gantry_sim_mig_profile& profile);

// Compute instances begin at multiples of their size, 3 slices at multiples of 4. If those places
// are taken, the driver's own choice is any free one.
uint32_t compute_alignment(uint32_t slices);
bool is_compute_place_free(const gantry_sim_mig_instance& instance, uint32_t start,
                           uint32_t slices);
bool free_compute_place(const gantry_sim_mig_instance& instance, uint32_t slices_of_gi,
                        uint32_t slices, uint32_t& start);
uint32_t remaining_computes(const gantry_sim_mig_instance& instance, uint32_t slices_of_gi,
                            uint32_t slices);

}  // namespace gantry::sim::nvml
