// SPDX-License-Identifier: Apache-2.0
// MIG instances of a simulated GPU: which placements are free, which ids the driver would give.
#pragma once

#include "base/core/result.hpp"
#include "sim/driver/image.h"
#include "sim/machine/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::sim {

// Adds one GPU instance and its compute instances. Busy if no placement is free, NotFound for an
// unknown profile, Invalid if the compute slices do not fit.
Status add_mig_instance(const gantry_sim_gpu& gpu, gantry_sim_gpu_state& state,
                        const MigRequest& request, std::uint32_t driver_major);

// The NVML functions that change MIG: name and number (gantry_sim_mig_function).
std::optional<std::uint32_t> mig_function(std::string_view name);
std::string_view mig_function_name(std::uint32_t number);  // "?" for an unknown number

void clear_mig_instances(gantry_sim_gpu_state& state);

// Minor numbers below /dev/nvidia-caps: 15 GPU instances for each GPU, 9 numbers for each of them.
inline constexpr std::uint32_t kMigInstanceIds = 15;
std::uint32_t gpu_instance_minor(std::uint32_t gpu_minor, std::uint32_t gpu_instance);
std::uint32_t compute_instance_minor(std::uint32_t gpu_minor, std::uint32_t gpu_instance,
                                     std::uint32_t compute_instance);

std::string mig_minors_file();  // /proc/driver/nvidia-caps/mig-minors

}  // namespace gantry::sim
