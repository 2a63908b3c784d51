// SPDX-License-Identifier: Apache-2.0
// NVML's numbers as the words that nvidia-smi prints; "" for unknown numbers.
#pragma once

#include "gpu/abi/nvml.h"
#include "gpu/model/inventory.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::probe {

std::string_view brand_name(nvmlBrandType_t brand);
std::string_view architecture_name(nvmlDeviceArchitecture_t architecture);
// For drivers before 450, which do not report it.
std::string_view architecture_of(const model::ComputeCapability& capability);
std::string_view compute_mode_name(nvmlComputeMode_t mode);
std::string_view virtualization_name(nvmlGpuVirtualizationMode_t mode);
model::PciePath to_pcie_path(nvmlGpuTopologyLevel_t level);
std::string format_cuda_version(int version);  // 13000 -> "13.0"; "" for an invalid number

// "13.580.159.04" -> "580.159.04": NVML puts the major CUDA version in front.
std::string driver_part_of_nvml_version(std::string_view version);

// The name of a MIG profile if NVML gives none: "1g.18gb", "1c.3g.71gb".
std::string mig_profile_name(unsigned gpu_slices, unsigned compute_slices, std::uint64_t memory_mib,
                             std::uint64_t gpu_memory_bytes);

}  // namespace gantry::probe
