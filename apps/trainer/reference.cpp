// SPDX-License-Identifier: Apache-2.0
#include "trainer/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gantry::workload {
namespace {

using Scores = std::array<double, kClasses>;

Scores scores_of(const float* image, std::span<const float> weights) {
  Scores scores{};
  for (std::size_t p = 0; p < kPixels; ++p) {
    for (std::size_t c = 0; c < kClasses; ++c)
      scores[c] += static_cast<double>(image[p]) * static_cast<double>(weights[p * kClasses + c]);
  }
  return scores;
}

Scores softmax(Scores scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - highest);
  for (double& score : scores) score /= sum;
  return scores;
}

}  // namespace

void reference_step(std::span<const float> pixels, std::span<const std::uint32_t> labels,
                    float rate, std::span<float> weights) {
  std::vector<double> gradient(weights.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const float* image = &pixels[row * kPixels];
    Scores delta = softmax(scores_of(image, weights));
    delta[labels[row]] -= 1;
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] += static_cast<double>(image[i / kClasses]) * delta[i % kClasses];
  }
  const double scale = static_cast<double>(rate) / static_cast<double>(labels.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(static_cast<double>(weights[i]) - scale * gradient[i]);
}

std::vector<std::uint32_t> reference_predict(std::span<const float> pixels,
                                             std::span<const float> weights) {
  std::vector<std::uint32_t> best;
  for (std::size_t at = 0; at < pixels.size(); at += kPixels) {
    const Scores scores = scores_of(&pixels[at], weights);
    best.push_back(static_cast<std::uint32_t>(std::max_element(scores.begin(), scores.end()) -
                                              scores.begin()));
  }
  return best;
}

}  // namespace gantry::workload
