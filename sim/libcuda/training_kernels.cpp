// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/training_kernels.hpp"

#include "sim/libcuda/kernel_arguments.hpp"

namespace gantry::sim::cuda {
namespace {

// An array of so many elements of four bytes.
struct Range {
  uint64_t address;
  uint64_t one;
  uint64_t other;
};

// The result of accessing all of these arrays.
template <unsigned kCount>
CUresult touch(const Range (&ranges)[kCount]) {
  for (const Range& range : ranges) {
    if (range.address % 4 != 0) return CUDA_ERROR_MISALIGNED_ADDRESS;
    if (range.one == 0 || range.other == 0) continue;
    if (range.one > kMaxAddressSpace / 4 / range.other) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!reachable(range.address, range.one * range.other * 4)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  return CUDA_SUCCESS;
}

// e^x for x <= 0. libm is not used: its expf needs a newer glibc than our minimum.
float exponential(float x) {
  if (x < -80.0F) return 0.0F;
  const double scaled = static_cast<double>(x) * 1.4426950408889634;  // log2(e)
  const int whole = static_cast<int>(scaled);
  const double rest = (scaled - whole) * 0.6931471805599453;  // in (-ln 2, 0]
  double sum = 1.0;
  for (int i = 12; i > 0; --i) sum = 1.0 + sum * rest / i;
  for (int i = 0; i > whole; --i) sum *= 0.5;
  return static_cast<float>(sum);
}

void gradient_of_row(DeviceArray<float>& scores, DeviceArray<float>& delta, uint64_t start,
                     uint32_t classes, uint32_t label, uint32_t rows) {
  float highest = scores.at(start);
  for (uint32_t c = 1; c < classes; ++c) {
    const float score = scores.at(start + c);
    if (score > highest) highest = score;
  }
  float sum = 0;
  for (uint32_t c = 0; c < classes; ++c) {
    const float power = exponential(scores.at(start + c) - highest);
    delta.set(start + c, power);
    sum += power;
  }
  for (uint32_t c = 0; c < classes; ++c) {
    const float wanted = c == label ? 1.0F : 0.0F;
    delta.set(start + c, (delta.at(start + c) / sum - wanted) / static_cast<float>(rows));
  }
}

}  // namespace

CUresult train_forward(const Launch& launch, bool& broken) {
  uint64_t x = 0;
  uint64_t w = 0;
  uint64_t scores = 0;
  uint32_t rows = 0;
  uint32_t pixels = 0;
  uint32_t classes = 0;
  broken = !argument(launch, 0, 0, x) || !argument(launch, 1, 8, w) ||
           !argument(launch, 2, 16, scores) || !argument(launch, 3, 24, rows) ||
           !argument(launch, 4, 28, pixels) || !argument(launch, 5, 32, classes);
  if (broken) return CUDA_SUCCESS;
  const CUresult fault = touch({{x, rows, pixels}, {w, pixels, classes}, {scores, rows, classes}});
  if (fault != CUDA_SUCCESS) return fault;
  DeviceArray<float> image(x);
  DeviceArray<float> weight(w);
  DeviceArray<float> out(scores);
  const uint64_t work = least(launch.threads, static_cast<uint64_t>(rows) * classes);
  for (uint64_t i = 0; i < work; ++i) {
    const uint64_t first = i / classes * pixels;
    float sum = 0;
    for (uint64_t p = 0; p < pixels; ++p)
      sum += image.at(first + p) * weight.at(p * classes + i % classes);
    out.set(i, sum);
  }
  return CUDA_SUCCESS;
}

CUresult train_gradient(const Launch& launch, bool& broken) {
  uint64_t scores = 0;
  uint64_t labels = 0;
  uint64_t delta = 0;
  uint32_t rows = 0;
  uint32_t classes = 0;
  broken = !argument(launch, 0, 0, scores) || !argument(launch, 1, 8, labels) ||
           !argument(launch, 2, 16, delta) || !argument(launch, 3, 24, rows) ||
           !argument(launch, 4, 28, classes);
  if (broken || classes == 0) return CUDA_SUCCESS;
  const CUresult fault =
      touch({{scores, rows, classes}, {labels, rows, 1}, {delta, rows, classes}});
  if (fault != CUDA_SUCCESS) return fault;
  DeviceArray<float> score(scores);
  DeviceArray<uint32_t> label(labels);
  DeviceArray<float> out(delta);
  const uint64_t work = least(launch.threads, rows);
  for (uint64_t row = 0; row < work; ++row)
    gradient_of_row(score, out, row * classes, classes, label.at(row), rows);
  return CUDA_SUCCESS;
}

CUresult train_update(const Launch& launch, bool& broken) {
  uint64_t x = 0;
  uint64_t delta = 0;
  uint64_t w = 0;
  uint32_t rows = 0;
  uint32_t pixels = 0;
  uint32_t classes = 0;
  float rate = 0;
  broken = !argument(launch, 0, 0, x) || !argument(launch, 1, 8, delta) ||
           !argument(launch, 2, 16, w) || !argument(launch, 3, 24, rows) ||
           !argument(launch, 4, 28, pixels) || !argument(launch, 5, 32, classes) ||
           !argument(launch, 6, 36, rate);
  if (broken) return CUDA_SUCCESS;
  const CUresult fault = touch({{x, rows, pixels}, {delta, rows, classes}, {w, pixels, classes}});
  if (fault != CUDA_SUCCESS) return fault;
  DeviceArray<float> image(x);
  DeviceArray<float> error(delta);
  DeviceArray<float> weight(w);
  const uint64_t work = least(launch.threads, static_cast<uint64_t>(pixels) * classes);
  for (uint64_t i = 0; i < work; ++i) {
    float sum = 0;
    for (uint64_t row = 0; row < rows; ++row)
      sum += image.at(row * pixels + i / classes) * error.at(row * classes + i % classes);
    weight.set(i, weight.at(i) - rate * sum);
  }
  return CUDA_SUCCESS;
}

CUresult train_predict(const Launch& launch, bool& broken) {
  uint64_t scores = 0;
  uint64_t best = 0;
  uint32_t rows = 0;
  uint32_t classes = 0;
  broken = !argument(launch, 0, 0, scores) || !argument(launch, 1, 8, best) ||
           !argument(launch, 2, 16, rows) || !argument(launch, 3, 20, classes);
  if (broken || classes == 0) return CUDA_SUCCESS;
  const CUresult fault = touch({{scores, rows, classes}, {best, rows, 1}});
  if (fault != CUDA_SUCCESS) return fault;
  DeviceArray<float> score(scores);
  DeviceArray<uint32_t> out(best);
  const uint64_t work = least(launch.threads, rows);
  for (uint64_t row = 0; row < work; ++row) {
    uint32_t found = 0;
    for (uint32_t c = 1; c < classes; ++c) {
      if (score.at(row * classes + c) > score.at(row * classes + found)) found = c;
    }
    out.set(row, found);
  }
  return CUDA_SUCCESS;
}

}  // namespace gantry::sim::cuda
