// SPDX-License-Identifier: Apache-2.0
// Learns to read digits on a GPU: softmax regression by gradient descent, computed entirely on the
// GPU.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

struct TrainerOptions {
  int max_steps = 1000;
  int batch_size = 100;
  double learning_rate = 0.5;
  bool verify = false;  // compare the first steps with the CPU
};

// Prints the device, and "Accuracy at step N: x" every ten steps, to `out`. Returns 0 if it learnt,
// else 1 with a reason on `err`.
int train(const Options& options, const TrainerOptions& how, std::FILE* out, std::FILE* err);

}  // namespace gantry::workload
