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

std::vector<std::uint64_t> mixed_starts_gib(std::uint64_t total_gib, std::uint64_t size_gib) {
  std::vector<std::uint64_t> starts;
  std::vector<PlacedVgpu> taken;
  while (const auto placed = place_mixed(total_gib * 1024, taken, {size_gib * 1024})) {
    taken.push_back(placed->front());
    starts.push_back(placed->front().start_mib / 1024);
  }
  return starts;
}

// The placement IDs of NVIDIA's vGPU user guide, GPUs with 48 GB and with 16 GB.
TEST(Placement, HasThePlacesOfNvidiasTables) {
  EXPECT_THAT(mixed_starts_gib(48, 48), ElementsAre(0));
  EXPECT_THAT(mixed_starts_gib(48, 24), ElementsAre(0, 24));
  EXPECT_THAT(mixed_starts_gib(48, 16), ElementsAre(0, 32));
  EXPECT_THAT(mixed_starts_gib(48, 12), ElementsAre(0, 12, 24, 36));
  EXPECT_THAT(mixed_starts_gib(48, 8), ElementsAre(0, 16, 24, 40));
  EXPECT_THAT(mixed_starts_gib(48, 6), ElementsAre(0, 6, 12, 18, 24, 30, 36, 42));
  EXPECT_THAT(mixed_starts_gib(48, 4), ElementsAre(0, 8, 12, 20, 24, 32, 36, 44));
  EXPECT_EQ(mixed_starts_gib(48, 3).size(), 16U);
  EXPECT_THAT(mixed_starts_gib(48, 2),
              ElementsAre(0, 4, 6, 10, 12, 16, 18, 22, 24, 28, 30, 34, 36, 40, 42, 46));
  EXPECT_THAT(mixed_starts_gib(48, 1),
              ElementsAre(0, 5, 6, 11, 12, 17, 18, 23, 24, 29, 30, 35, 36, 41, 42, 47));
  EXPECT_THAT(mixed_starts_gib(16, 4), ElementsAre(0, 4, 8, 12));
  EXPECT_EQ(mixed_starts_gib(16, 1).size(), 16U);
}

TEST(Placement, FitsFewerOfASizeThatIsNoHalf) {
  EXPECT_TRUE(place_mixed(24576, {}, {12288, 4096, 4096}));
  EXPECT_FALSE(place_mixed(24576, {}, {12288, 4096, 4096, 4096})) << "places 12 and 20 only";
  EXPECT_FALSE(place_mixed(49152, {}, {16384, 16384, 16384}));
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
