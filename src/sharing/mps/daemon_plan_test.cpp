// SPDX-License-Identifier: Apache-2.0
#include "sharing/mps/daemon_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::mps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

model::Inventory machine(int gpus, int minor = 5) {
  model::Inventory inventory;
  for (int i = 0; i < gpus; ++i) {
    auto& gpu = inventory.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid.text = "GPU-" + std::to_string(i);
    gpu.memory_bytes = std::uint64_t{16} << 30U;
    gpu.compute_capability = {.major = 7, .minor = minor};
  }
  return inventory;
}

model::AdvertisedResource shares(int gpus, int replicas) {
  model::AdvertisedResource resource{.name = "nvidia.com/gpu",
                                     .use = model::AllocationMode::Shares};
  for (int i = 0; i < gpus; ++i) {
    for (int r = 0; r < replicas; ++r)
      resource.devices.push_back({.gpu = {"GPU-" + std::to_string(i)}, .replica = r});
  }
  return resource;
}

TEST(MpsPlan, EachClientGetsAnEqualPart) {
  const std::vector offered{shares(2, 4)};
  const auto plans = plan_daemons(machine(2), offered);
  ASSERT_TRUE(plans.ok());
  EXPECT_THAT(*plans, ElementsAre(DaemonPlan{.resource = "nvidia.com/gpu",
                                             .gpus = {{{"GPU-0"}, 4096}, {{"GPU-1"}, 4096}},
                                             .thread_percentage = 25}));
}

TEST(MpsPlan, OtherUsesNeedNoDaemon) {
  auto replicas = shares(1, 4);
  replicas.use = model::AllocationMode::Replicas;
  const std::vector offered{replicas};
  EXPECT_THAT(*plan_daemons(machine(1), offered), IsEmpty());
}

TEST(MpsPlan, MoreReplicasThanAServerHasClientsAreRefused) {
  EXPECT_TRUE(plan_daemons(machine(1), std::vector{shares(1, 48)}).ok());
  EXPECT_TRUE(plan_daemons(machine(1, 0), std::vector{shares(1, 16)}).ok());
  const auto refused = plan_daemons(machine(1, 0), std::vector{shares(1, 17)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Invalid);
  EXPECT_THAT(refused.error().text(), HasSubstr("MPS supports only 16 clients"));
}

}  // namespace
}  // namespace gantry::mps
