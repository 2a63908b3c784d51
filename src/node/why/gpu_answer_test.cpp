// SPDX-License-Identifier: Apache-2.0
#include "node/why/gpu_answer.hpp"

#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using explain::StepStatus;
using model::HealthState;

model::Inventory machine(HealthState state, std::vector<std::string> reasons = {}) {
  model::Inventory inventory;
  model::Gpu well{.uuid = {"GPU-1"}, .name = "NVIDIA H200"};
  well.health.state = HealthState::Ok;
  model::Gpu gpu{.uuid = {"GPU-2"}, .name = "NVIDIA H200"};
  gpu.health = {.state = state, .reasons = std::move(reasons)};
  inventory.gpus = {well, gpu};
  return inventory;
}

TEST(GpuAnswer, OnlyTheGpusOfThePodCount) {
  const auto lost = machine(HealthState::Lost, {"it fell off the bus"});
  const auto other = gpu_answer_step({{"GPU-1"}}, lost);
  EXPECT_EQ(other.verdict, StepStatus::Ok);
  EXPECT_EQ(other.read, "GPU-1 (NVIDIA H200)");
  const auto own = gpu_answer_step({{"GPU-1"}, {"GPU-2"}}, lost);
  EXPECT_EQ(own.verdict, StepStatus::Failed);
  EXPECT_EQ(own.cause, "GPU-2 does not answer: it fell off the bus");
  EXPECT_EQ(own.remedy, "gantry doctor");
}

TEST(GpuAnswer, AGpuThatWorksBadlyIsDoubtful) {
  const auto slow = gpu_answer_step({{"GPU-2"}}, machine(HealthState::Degraded, {"it is hot"}));
  EXPECT_EQ(slow.verdict, StepStatus::Warning);
  EXPECT_EQ(slow.cause, "GPU-2: it is hot");
  EXPECT_EQ(gpu_answer_step({{"GPU-2"}}, machine(HealthState::Unknown)).verdict,
            StepStatus::Unknown);
}

TEST(GpuAnswer, AGpuThatTheDriverDoesNotListIsLost) {
  const auto gone = gpu_answer_step({{"GPU-9"}}, machine(HealthState::Ok));
  EXPECT_EQ(gone.verdict, StepStatus::Failed);
  EXPECT_EQ(gone.read, "GPU-9 is missing");
  EXPECT_EQ(gone.cause, "the driver does not list GPU-9, which the pod holds");
}

}  // namespace
}  // namespace gantry::why
