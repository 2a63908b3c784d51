// SPDX-License-Identifier: Apache-2.0
// Which memory slices of a card are taken, and which instances still fit.
#pragma once

#include "sim/libnvidia-ml/mig_internal.hpp"

namespace gantry::sim::nvml {

// Slices as bits; a card has eight.
inline uint32_t slice_mask(uint32_t start, uint32_t size) {
  return start > 7 || size > 8 ? 0xFFU : (((1U << size) - 1U) << start) & 0xFFU;
}
uint8_t taken_slices(const gantry_sim_gpu& card, const gantry_sim_gpu_state& state);
bool free_placement(const gantry_sim_mig_profile& profile, uint8_t taken, uint32_t& start);
// How many more instances of this profile could be created now.
uint32_t remaining_instances(const gantry_sim_gpu& card, const gantry_sim_gpu_state& state,
                             const gantry_sim_mig_profile& profile);

}  // namespace gantry::sim::nvml
