// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/placement.hpp"

#include <algorithm>
#include <functional>

namespace gantry::vgpu {
namespace {

constexpr std::uint64_t kMostParts = 16;

bool overlaps(const PlacedVgpu& a, const PlacedVgpu& b) {
  return a.start_mib < b.start_mib + b.size_mib && b.start_mib < a.start_mib + a.size_mib;
}

// The smallest part of the framebuffer that holds the vGPU.
std::uint64_t part_for(std::uint64_t total, std::uint64_t size) {
  std::uint64_t parts = 1;
  while (parts < kMostParts && total / (2 * parts) >= size) parts *= 2;
  return total / parts;
}

std::optional<PlacedVgpu> lowest_place(std::uint64_t total, const std::vector<PlacedVgpu>& taken,
                                       std::uint64_t size) {
  if (size == 0 || size > total) return std::nullopt;
  const auto part = part_for(total, size);
  for (std::uint64_t number = 0; number < total / part; ++number) {
    const auto gap = number % 2 == 0 ? 0 : part - size;
    const PlacedVgpu at{number * part + gap, size};
    const bool free = std::none_of(taken.begin(), taken.end(),
                                   [&](const PlacedVgpu& other) { return overlaps(at, other); });
    if (free) return at;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<PlacedVgpu>> place_mixed(std::uint64_t total_mib,
                                                   std::vector<PlacedVgpu> existing,
                                                   std::vector<std::uint64_t> sizes_mib) {
  std::sort(sizes_mib.begin(), sizes_mib.end(), std::greater<>());
  std::vector<PlacedVgpu> placed;
  for (const auto size : sizes_mib) {
    const auto at = lowest_place(total_mib, existing, size);
    if (!at) return std::nullopt;
    existing.push_back(*at);
    placed.push_back(*at);
  }
  return placed;
}

}  // namespace gantry::vgpu
