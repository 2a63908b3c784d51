// SPDX-License-Identifier: Apache-2.0
#include "node/pod_shares/share.hpp"

#include "base/core/bytes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::pod_shares {
namespace {

using testing::HasSubstr;

Result<policy::Share> share_of(const std::vector<model::GpuShare>& parts,
                               const std::string& priority = "", podspec::Amount memory = {}) {
  podspec::PodRequest ask;
  ask.share_priority = priority;
  podspec::ContainerRequest container;
  container.memory = memory;
  return share_for("slot-1", ask, container, parts);
}

TEST(ShareFor, HasTheLimitsOfTheContainer) {
  const auto share = share_of({{{"GPU-a"}, 0, 4096, 30}, {{"GPU-b"}, 1, 4096, 30}}, "high");
  ASSERT_TRUE(share.ok()) << share.error().text();
  EXPECT_EQ(*share, (policy::Share{.name = "slot-1",
                                   .gpus = {{"GPU-a"}, {"GPU-b"}},
                                   .memory = policy::MemoryLimit{.bytes = 4096 * kMiB},
                                   .time_policy = {.percent = 30,
                                                   .excess = policy::Excess::Refused,
                                                   .priority = policy::Priority::High},
                                   .time_limited = true,
                                   .backend = policy::Backend::Fence}));
}

TEST(ShareFor, TakesNoTurnsWithoutALimitAndAloneOnItsGpu) {
  for (const std::uint32_t cores : {0U, 100U}) {
    const auto share = share_of({{{"GPU-a"}, 0, 4096, cores}});
    ASSERT_TRUE(share.ok()) << share.error().text();
    EXPECT_FALSE(share->time_limited);
    EXPECT_EQ(share->time_policy, policy::TimePolicy{});
  }
}

TEST(ShareFor, HasAPercentageOfGpusThatDiffer) {
  const std::vector<model::GpuShare> parts{{{"GPU-a"}, 0, 4096, 0}, {{"GPU-b"}, 1, 8192, 0}};
  const auto share = share_of(parts, "", {podspec::Amount::Kind::Percent, 50});
  ASSERT_TRUE(share.ok()) << share.error().text();
  EXPECT_EQ(share->memory, policy::MemoryLimit{.percent = 50});
  EXPECT_EQ(share_of(parts, "", {podspec::Amount::Kind::MiB, 4096}).error().code(),
            Errc::Unsupported);
}

// Without this, a limit of 0 would mean no limit.
TEST(ShareFor, NeedsAPossibleAmountOfMemory) {
  for (const std::uint64_t mib : {std::uint64_t{0}, UINT64_MAX}) {
    const auto share = share_of({{{"GPU-a"}, 0, mib, 0}});
    ASSERT_FALSE(share.ok());
    EXPECT_EQ(share.error().code(), Errc::Invalid);
    EXPECT_THAT(share.error().text(), HasSubstr("MiB of memory"));
  }
}

}  // namespace
}  // namespace gantry::pod_shares
