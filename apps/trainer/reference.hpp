// SPDX-License-Identifier: Apache-2.0
// Computes on the CPU what the kernels should compute: the reference for a real or simulated GPU.
#pragma once

#include "trainer/digits.hpp"

#include <span>

namespace gantry::workload {

// One step of gradient descent on a batch; `weights` is kPixels rows of kClasses.
void reference_step(std::span<const float> pixels, std::span<const std::uint32_t> labels,
                    float rate, std::span<float> weights);

// Returns the class with the highest score for each picture.
std::vector<std::uint32_t> reference_predict(std::span<const float> pixels,
                                             std::span<const float> weights);

}  // namespace gantry::workload
