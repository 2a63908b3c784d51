// SPDX-License-Identifier: Apache-2.0
#include "trainer/digits.hpp"

#include <algorithm>
#include <array>

namespace gantry::workload {
namespace {

constexpr int kGlyphWidth = 5;
constexpr int kGlyphHeight = 7;

// Five dots per row, the highest bit on the left.
constexpr std::array<std::array<std::uint8_t, kGlyphHeight>, kClasses> kGlyphs = {{
    {0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110},
    {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110},
    {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111},
    {0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110},
    {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010},
    {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110},
    {0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110},
    {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000},
    {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110},
    {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100},
}};

class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed) {}
  float between(float low, float high) {
    state_ = state_ * 1664525U + 1013904223U;
    return low + (high - low) * static_cast<float>(state_ >> 8U) / 16777216.0F;
  }

 private:
  std::uint32_t state_;
};

float dot(std::uint32_t digit, int column, int row) {
  if (column < 0 || column >= kGlyphWidth || row < 0 || row >= kGlyphHeight) return 0.0F;
  const unsigned line = kGlyphs[digit][static_cast<std::size_t>(row)];
  return static_cast<float>(line >> static_cast<unsigned>(kGlyphWidth - 1 - column) & 1U);
}

// Interpolates the glyph between its dots.
float ink(std::uint32_t digit, float x, float y) {
  const int column = static_cast<int>(x + 8.0F) - 8;  // rounds down, also below 0
  const int row = static_cast<int>(y + 8.0F) - 8;
  const float right = x - static_cast<float>(column);
  const float down = y - static_cast<float>(row);
  const float top = dot(digit, column, row) * (1 - right) + dot(digit, column + 1, row) * right;
  const float bottom =
      dot(digit, column, row + 1) * (1 - right) + dot(digit, column + 1, row + 1) * right;
  return top * (1 - down) + bottom * down;
}

void draw(std::uint32_t digit, Random& random, float* pixels) {
  const float wide = random.between(0.36F, 0.52F);  // dots of the glyph per pixel
  const float high = random.between(0.46F, 0.60F);
  const float slant = random.between(-0.14F, 0.14F);
  const float tilt = random.between(-0.10F, 0.10F);
  const float centre_x = 7.5F + random.between(-2.0F, 2.0F);
  const float centre_y = 7.5F + random.between(-1.5F, 1.5F);
  const float strength = random.between(0.7F, 1.0F);
  for (std::size_t i = 0; i < kSide * kSide; ++i) {
    const float x = static_cast<float>(i % kSide) - centre_x;
    const std::size_t row = i / kSide;
    const float y = static_cast<float>(row) - centre_y;
    const float inked = ink(digit, 2.0F + x * wide + y * slant, 3.0F + y * high + x * tilt);
    pixels[i] = std::clamp(inked * strength + random.between(-0.25F, 0.25F), 0.0F, 1.0F);
  }
  pixels[kPixels - 1] = 1.0F;
}

}  // namespace

Digits draw_digits(std::size_t count, std::uint32_t seed) {
  Digits digits{.pixels = std::vector<float>(count * kPixels),
                .labels = std::vector<std::uint32_t>(count)};
  Random random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto digit =
        std::min<std::uint32_t>(static_cast<std::uint32_t>(random.between(0, kClasses)), 9);
    digits.labels[i] = digit;
    draw(digit, random, &digits.pixels[i * kPixels]);
  }
  return digits;
}

}  // namespace gantry::workload
