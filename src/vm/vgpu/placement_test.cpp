// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/placement.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace gantry::vgpu {
namespace {

using ::testing::ElementsAre;

TEST(Placement, TakesTheLargestFirst) {
  const auto placed = place_mixed(24576, {}, {4096, 12288, 8192});
  ASSERT_TRUE(placed);
  EXPECT_THAT(*placed,
              ElementsAre(PlacedVgpu{0, 12288}, PlacedVgpu{16384, 8192}, PlacedVgpu{12288, 4096}));
}

TEST(Placement, AlignsEachToItsOwnSize) {
  EXPECT_FALSE(place_mixed(24576, {{4096, 4096}}, {16384})) << "16 GiB can only start at 0";
  EXPECT_TRUE(place_mixed(24576, {{16384, 4096}}, {16384}));
  EXPECT_FALSE(place_mixed(24576, {}, {24576, 1024}));
  EXPECT_FALSE(place_mixed(24576, {}, {0}));
}

TEST(Placement, NeverOverlapsAndNeverLeavesTheFramebuffer) {
  std::mt19937 random(17);  // NOLINT(bugprone-random-generator-seed): the same every time
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> sizes(1 + random() % 12);
    for (auto& size : sizes) size = 1024ULL << (random() % 6);
    const auto placed = place_mixed(49152, {}, sizes);
    const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    if (!placed) continue;
    EXPECT_LE(sum, 49152U);
    ASSERT_EQ(placed->size(), sizes.size());
    for (std::size_t i = 0; i < placed->size(); ++i) {
      const auto& one = (*placed)[i];
      EXPECT_EQ(one.start_mib % one.size_mib, 0U);
      EXPECT_LE(one.start_mib + one.size_mib, 49152U);
      for (std::size_t j = 0; j < i; ++j) {
        const auto& other = (*placed)[j];
        EXPECT_TRUE(one.start_mib >= other.start_mib + other.size_mib ||
                    other.start_mib >= one.start_mib + one.size_mib);
      }
    }
  }
}

}  // namespace
}  // namespace gantry::vgpu
