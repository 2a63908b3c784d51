// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/mmio.hpp"

#include "vm/hypervisor/gpus_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::hypervisor {
namespace {

std::vector<GuestGpu> cards(std::string_view name, std::size_t count) {
  return std::vector<GuestGpu>(count, *card_by_name(name));
}

TEST(Mmio, WindowsOfRealCardsArePowersOfTwo) {
  EXPECT_EQ(mmio_window(cards("h200", 1)), 512 * kGiB);
  EXPECT_EQ(mmio_window(cards("a100-80", 1)), 256 * kGiB);
  EXPECT_EQ(mmio_window(cards("h100-80", 1)), 256 * kGiB);
  EXPECT_EQ(mmio_window(cards("l40s", 1)), 128 * kGiB);
  EXPECT_EQ(mmio_window(cards("h200", 8)), 4096 * kGiB);
}

TEST(Mmio, ASmallCardFitsIntoTheDefault) {
  EXPECT_EQ(mmio_window(cards("t4", 1)), kDefaultWindow);
  EXPECT_EQ(mmio_window(cards("t4", 8)), kDefaultWindow);
  EXPECT_EQ(mmio_window({}), kDefaultWindow);
}

// Each bridge window begins at a multiple of 256 GiB and is a little longer: three of them take
// 2 * 512 GiB + 256 GiB and more, while the sum of all BARs would fit into 1 TiB.
TEST(Mmio, GapsBetweenBridgeWindowsAreCounted) {
  const auto three = cards("h200", 3);
  EXPECT_EQ(mmio_window(three), 2048 * kGiB);
}

TEST(Mmio, IsAtLeastTwiceTheLargeBars) {
  for (const std::string_view card : {"h200", "a100-80", "h100-80", "l40s", "a100-40"}) {
    for (std::size_t count = 1; count <= 16; ++count) {
      const auto all = cards(card, count);
      EXPECT_GE(mmio_window(all), 2 * count * all.front().bars[1].bytes) << card << " " << count;
    }
  }
}

// The examples of VMware's rule.
TEST(Mmio, EsxiSizesFollowTheMemory) {
  EXPECT_EQ(esxi_window_gb(cards("a100-80", 2)), 512U);
  EXPECT_EQ(esxi_window_gb(cards("l40s", 1)), 128U);
  EXPECT_EQ(esxi_window_gb(cards("h200", 1)), 512U);
  EXPECT_EQ(esxi_window_gb(cards("h200", 8)), 4096U);
}

TEST(Mmio, EsxiNeedsWideAddressesForLargeCardsOnly) {
  EXPECT_TRUE(esxi_needs_64bit(cards("h200", 1)));
  EXPECT_TRUE(esxi_needs_64bit(cards("p100-16", 1)));
  EXPECT_FALSE(esxi_needs_64bit(cards("t4", 4)));
}

TEST(Mmio, HugeNumbersDoNotOverflow) {
  GuestGpu broken;
  broken.bars = {{.index = 1, .bytes = ~0ULL, .is_64bit = true},
                 {.index = 3, .bytes = ~0ULL, .is_64bit = true}};
  const std::vector<GuestGpu> gpus{broken, broken};
  EXPECT_GE(mmio_window(gpus), 1ULL << 62U);
  EXPECT_TRUE(esxi_needs_64bit(gpus));
  EXPECT_GT(locked_memory(~0ULL), 1ULL << 61U);
}

}  // namespace
}  // namespace gantry::hypervisor
