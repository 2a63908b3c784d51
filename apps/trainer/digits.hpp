// SPDX-License-Identifier: Apache-2.0
// Generates pictures of digits, so that the trainer needs no download. Each picture is rotated,
// stretched, shifted and given noise by random amounts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gantry::workload {

inline constexpr std::size_t kSide = 16;
// The last pixel is always 1: its weight is the class's bias.
inline constexpr std::size_t kPixels = kSide * kSide + 1;
inline constexpr std::size_t kClasses = 10;

struct Digits {
  std::vector<float> pixels;          // kPixels values per picture, from 0 to 1
  std::vector<std::uint32_t> labels;  // one per picture
};

// Gives the same pictures for the same seed on every machine.
Digits draw_digits(std::size_t count, std::uint32_t seed);

}  // namespace gantry::workload
