// SPDX-License-Identifier: Apache-2.0
// Pictures of digits, drawn here, so that a trainer needs no download: each turned, stretched,
// shifted and speckled by its own measure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gantry::workload {

inline constexpr std::size_t kSide = 16;
// The last one is always 1: its weight is the class's bias.
inline constexpr std::size_t kPixels = kSide * kSide + 1;
inline constexpr std::size_t kClasses = 10;

struct Digits {
  std::vector<float> pixels;          // kPixels for each, from 0 to 1
  std::vector<std::uint32_t> labels;  // one for each
};

// The same for the same seed, on every machine.
Digits draw_digits(std::size_t count, std::uint32_t seed);

}  // namespace gantry::workload
