// SPDX-License-Identifier: Apache-2.0
#include "node/why/share_state.hpp"

#include "container/grants/grants.hpp"
#include "support/parsed_json.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using explain::StepStatus;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1024;

TEST(WhyShare, AShareShowsWhatIsUsedOfIt) {
  daemon::ShareState state;
  state.gpus = {{.uuid = {"GPU-0"},
                 .memory_limit = 10 * kGiB << 20U,
                 .memory_held = 1 * kGiB << 20U,
                 .memory_used = 2 * kGiB << 20U,
                 .used = 0.25}};
  state.processes.resize(1);
  auto step = share_state_step("c", "slot-1", &state);
  EXPECT_EQ(step.verdict, StepStatus::Ok);
  EXPECT_EQ(step.read, "2048 of 10240 MiB and 25 % of the time of GPU-0 in use by 1 process");
  state.gpus[0].memory_limit = UINT64_MAX;
  state.processes.resize(2);
  step = share_state_step("c", "slot-1", &state);
  EXPECT_EQ(step.read, "2048 MiB and 25 % of the time of GPU-0 in use by 2 processes");
}

TEST(WhyShare, AShareThatRefusedAnAllocationIsWorthALook) {
  daemon::ShareState state{.refused = 2};
  const auto step = share_state_step("c", "slot-1", &state);
  EXPECT_EQ(step.verdict, StepStatus::Warning);
  EXPECT_THAT(step.cause, HasSubstr("2 allocations did not fit"));
}

// A node on which this pod was given a share, and no share daemon runs.
TEST(WhyShare, AContainerWhoseShareIsGoneIsBroken) {
  test::Tree node;
  const auto pod = test::parsed(R"({"metadata":{"uid":"u"}})");
  EXPECT_TRUE(share_state_steps(node.host(), pod.root()).empty());
  model::Grant grant{.pod = {.uid = "another", .name = "p"},
                     .share = model::GrantShare{.name = "slot-1"}};
  ASSERT_TRUE(grants::write(node.host(), "c", grant).ok());
  EXPECT_TRUE(share_state_steps(node.host(), pod.root()).empty());
  grant.pod.uid = "u";
  ASSERT_TRUE(grants::write(node.host(), "c", grant).ok());
  const auto steps = share_state_steps(node.host(), pod.root());
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].verdict, StepStatus::Failed);
  EXPECT_EQ(steps[0].read, "there is no share slot-1");
}

}  // namespace
}  // namespace gantry::why
