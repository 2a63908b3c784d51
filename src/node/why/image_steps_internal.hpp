// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node/why/image_steps.hpp"
#include "node/why/software_steps.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::why {

// The newest CUDA that the machine's driver supports, "13.0"; "" without a driver.
std::string driver_cuda(const model::Inventory& machine);

// Files of the image against the machine's driver.
std::vector<explain::Step> image_cuda_steps(const image::Image& image,
                                            const model::Inventory& machine,
                                            const Software& software);

// The image's environment: which GPUs and driver files it asks for, and what it requires of them.
std::vector<explain::Step> image_environment_steps(const image::Image& image,
                                                   const model::Inventory& machine);

}  // namespace gantry::why
