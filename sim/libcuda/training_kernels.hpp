// SPDX-License-Identifier: Apache-2.0
// The kernels of gantry-trainer: softmax regression on rows of pixels.
#pragma once

#include "sim/libcuda/kernels.hpp"

namespace gantry::sim::cuda {

// scores[row, c] = sum over p of x[row, p] * w[p, c], a thread for each score:
// (const float* x, const float* w, float* scores, unsigned rows, unsigned pixels, unsigned classes)
CUresult train_forward(const Launch& launch, bool& broken);

// delta[row, c] = (softmax of the row's scores - 1 where c is its label) / rows, a thread for each
// row: (const float* scores, const unsigned* labels, float* delta, unsigned rows, unsigned classes)
CUresult train_gradient(const Launch& launch, bool& broken);

// w[p, c] -= rate * sum over rows of x[row, p] * delta[row, c], a thread for each weight:
// (const float* x, const float* delta, float* w, unsigned rows, unsigned pixels, unsigned classes,
// float rate)
CUresult train_update(const Launch& launch, bool& broken);

// best[row] = the first class with the highest score, a thread for each row:
// (const float* scores, unsigned* best, unsigned rows, unsigned classes)
CUresult train_predict(const Launch& launch, bool& broken);

}  // namespace gantry::sim::cuda
