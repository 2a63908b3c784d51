// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/visible.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace gantry::sim::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two equal cards, a faster one on the last bus.
constexpr Candidate kCards[] = {
    {0, -1, -1, "GPU-aaaa0000", nullptr, 10},
    {1, -1, -1, "GPU-aaaa1111", nullptr, 10},
    {2, -1, -1, "GPU-bbbb2222", nullptr, 99},
};
// A whole card and one with three compute instances.
constexpr Candidate kMig[] = {
    {0, -1, -1, "GPU-aaaa0000", nullptr, 10},
    {1, 7, 0, "GPU-aaaa1111", "MIG-1111", 10},
    {1, 8, 0, "GPU-aaaa1111", "MIG-2222", 10},
    {1, 8, 1, "GPU-aaaa1111", "MIG-3333", 10},
};

template <std::size_t N>
std::vector<std::size_t> chosen(const Candidate (&candidates)[N], const char* visible,
                                const char* order = nullptr) {
  std::vector<std::size_t> result(16);
  result.resize(choose_visible(candidates, N, visible, order, result.data(), result.size()));
  return result;
}

TEST(VisibleDevices, ComeFastestFirstUnlessTheBusDecides) {
  EXPECT_THAT(chosen(kCards, nullptr), ElementsAre(2, 0, 1));
  EXPECT_THAT(chosen(kCards, nullptr, "PCI_BUS_ID"), ElementsAre(0, 1, 2));
  EXPECT_THAT(chosen(kCards, nullptr, "FASTEST_FIRST"), ElementsAre(2, 0, 1));
}

TEST(VisibleDevices, AreChosenAndOrderedByNumber) {
  EXPECT_THAT(chosen(kCards, "1,0", "PCI_BUS_ID"), ElementsAre(1, 0));
  EXPECT_THAT(chosen(kCards, "0"), ElementsAre(2)) << "number 0 is the fastest";
  EXPECT_THAT(chosen(kCards, " 2 , 1 ", "PCI_BUS_ID"), ElementsAre(2, 1));
}

TEST(VisibleDevices, AreChosenByUuidOrItsUniqueBeginning) {
  EXPECT_THAT(chosen(kCards, "GPU-aaaa1111"), ElementsAre(1));
  EXPECT_THAT(chosen(kCards, "GPU-bb,gpu-AAAA0"), ElementsAre(2, 0));
  EXPECT_THAT(chosen(kCards, "GPU-aaaa"), IsEmpty()) << "two begin so";
}

TEST(VisibleDevices, EndAtTheFirstWordThatNamesNothing) {
  EXPECT_THAT(chosen(kCards, "0,7,1", "PCI_BUS_ID"), ElementsAre(0));
  EXPECT_THAT(chosen(kCards, "0,-1,1", "PCI_BUS_ID"), ElementsAre(0));
  EXPECT_THAT(chosen(kCards, "0,0", "PCI_BUS_ID"), ElementsAre(0));
  EXPECT_THAT(chosen(kCards, "-1"), IsEmpty());
  EXPECT_THAT(chosen(kCards, ""), IsEmpty());
  EXPECT_THAT(chosen(kCards, "NoDevFiles"), IsEmpty());
  EXPECT_THAT(chosen(kCards, "1x", "PCI_BUS_ID"), IsEmpty());
  EXPECT_THAT(chosen(kCards, ",,,"), IsEmpty());
}

TEST(VisibleDevices, AreOneComputeInstanceAtMostAndNoWholeGpuBesideIt) {
  EXPECT_THAT(chosen(kMig, nullptr), ElementsAre(1));
  EXPECT_THAT(chosen(kMig, "0", "PCI_BUS_ID"), ElementsAre(0)) << "the whole card alone";
  EXPECT_THAT(chosen(kMig, "MIG-3333"), ElementsAre(3));
  EXPECT_THAT(chosen(kMig, "MIG-2222,MIG-3333"), ElementsAre(2));
  EXPECT_THAT(chosen(kMig, "MIG-GPU-aaaa1111/8/1"), ElementsAre(3)) << "the form of older drivers";
  EXPECT_THAT(chosen(kMig, "GPU-aaaa1111"), ElementsAre(1));
  EXPECT_THAT(chosen(kMig, "MIG-9"), IsEmpty());
}

}  // namespace
}  // namespace gantry::sim::cuda
