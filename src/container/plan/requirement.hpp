// SPDX-License-Identifier: Apache-2.0
// NVIDIA_REQUIRE_*: what an image needs of the machine. "cuda>=12.4 brand=tesla,driver>=470": a
// space is "or", a comma "and"; several variables must all hold. Properties: cuda, driver, arch
// (compute capability), brand; operators = != < <= > >=.
#pragma once

#include "base/core/result.hpp"
#include "container/plan/device_selection.hpp"
#include "gpu/model/inventory.hpp"

#include <span>
#include <string>

namespace gantry::plan {

// Unsupported when one does not hold for the machine or one of the devices, with what is needed,
// what is here and what helps; also when a fact it needs is not known. Invalid for an expression
// that cannot be read.
Status check_requirements(std::span<const std::string> requirements,
                          const model::Inventory& machine, std::span<const SelectedDevice> devices);

// The newest CUDA that a driver branch serves: "13.0" for 580; "" for one we do not know.
std::string newest_cuda_for_driver(std::string_view driver_version);

}  // namespace gantry::plan
