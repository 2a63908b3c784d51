// SPDX-License-Identifier: Apache-2.0
// What the kernels should compute, on the CPU: the yardstick for a GPU, real or simulated.
#pragma once

#include "trainer/digits.hpp"

#include <span>

namespace gantry::workload {

// One step of gradient descent on a batch; `weights` is kPixels rows of kClasses.
void reference_step(std::span<const float> pixels, std::span<const std::uint32_t> labels,
                    float rate, std::span<float> weights);

// The class with the highest score for each picture.
std::vector<std::uint32_t> reference_predict(std::span<const float> pixels,
                                             std::span<const float> weights);

}  // namespace gantry::workload
