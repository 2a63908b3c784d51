// SPDX-License-Identifier: Apache-2.0
// NVIDIA_REQUIRE_*: the image's requirements on the machine. "cuda>=12.4 brand=tesla,driver>=470":
// a space is "or", a comma "and"; all variables must be met. Properties: cuda, driver, arch
// (compute capability), brand; operators = != < <= > >=.
#pragma once

#include "base/core/result.hpp"
#include "container/plan/device_selection.hpp"
#include "gpu/model/inventory.hpp"

#include <span>
#include <string>

namespace gantry::plan {

// Unsupported if the machine or one of the devices does not meet a requirement, or if a value that
// it needs is unknown; the error says what is required, what the machine has, and what helps.
// Invalid for a malformed expression.
Status check_requirements(std::span<const std::string> requirements,
                          const model::Inventory& machine, std::span<const SelectedDevice> devices);

// The newest CUDA version that a driver branch supports: "13.0" for 580; "" for an unknown branch.
std::string newest_cuda_for_driver(std::string_view driver_version);

}  // namespace gantry::plan
