// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/checkpoint.hpp"

#include "gpu/mig/known_models.hpp"
#include "gpu/mig/mig_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string checkpoint_refusal(std::string_view text) {
  const auto saved = parse_checkpoint(text, "saved.json");
  return saved.ok() ? "accepted" : saved.error().text();
}

TEST(MigCheckpoint, WritesNvmlsNumbers) {
  auto gpu = gpu_for_test("H200", "3g.71gb@4=1+2");
  gpu.uuid.text = "GPU-1";
  auto off = gpu_for_test("H200", "on");
  off.uuid.text = "GPU-2";
  off.current = model::MigMode::Disabled;
  MigGpu none{.uuid = {"GPU-3"}, .current = model::MigMode::Unsupported};
  EXPECT_EQ(write_checkpoint({gpu, off, none}),
            R"({"Version":"v1","MigState":{"Devices":[{"UUID":"GPU-1","MigMode":1,"GpuInstances":[)"
            R"({"ProfileID":2,"Placement":{"Start":4,"Size":4},"ComputeInstances":[)"
            R"({"ProfileID":1,"EngProfileID":0},{"ProfileID":0,"EngProfileID":0}]}]},)"
            R"({"UUID":"GPU-2","MigMode":0,"GpuInstances":[]}]}})");
}

TEST(MigCheckpoint, ReadsBackEveryProfileOfEveryModel) {
  for (const auto& model : known_models()) {
    const auto empty = gpu_for_test(model);
    for (const auto& profile : empty.profiles) {
      auto gpu = gpu_for_test(model, profile.name);
      gpu.uuid.text = "GPU-1";
      const auto saved = parse_checkpoint(write_checkpoint({gpu}), "saved.json");
      ASSERT_TRUE(saved.ok()) << saved.error().text();
      ASSERT_THAT(*saved, SizeIs(1));
      const auto layout = saved_layout(saved->front(), empty);
      ASSERT_TRUE(layout.ok()) << layout.error().text();
      const auto restored = result_for_test(empty, solve(empty, *layout));
      EXPECT_EQ(restored, to_words(current_layout(gpu)));
    }
  }
}

TEST(MigCheckpoint, ReadsNullAsAnEmptyList) {
  const auto saved = parse_checkpoint(
      R"({"Version":"v1","MigState":{"Devices":[{"UUID":"GPU-1","MigMode":0,"GpuInstances":null}]}})",
      "saved.json");
  ASSERT_TRUE(saved.ok()) << saved.error().text();
  EXPECT_THAT(saved->front().instances, IsEmpty());
  EXPECT_EQ(to_words(*saved_layout(saved->front(), gpu_for_test("H200"))), "off");
}

TEST(MigCheckpoint, RefusesOtherTexts) {
  EXPECT_THAT(checkpoint_refusal("x"), HasSubstr("saved.json"));
  EXPECT_THAT(checkpoint_refusal("{}"),
              HasSubstr("is missing or not v1, so this is not a MIG checkpoint"));
  EXPECT_THAT(checkpoint_refusal(R"({"Version":"v1","MigState":{"Devices":{}}})"),
              HasSubstr("must be a list"));
  EXPECT_THAT(checkpoint_refusal(R"({"Version":"v1","MigState":{"Devices":[1]}})"),
              HasSubstr("must have objects"));
  EXPECT_THAT(checkpoint_refusal(R"({"Version":"v1","MigState":{"Devices":[{}]}})"),
              HasSubstr("no `UUID`"));
  EXPECT_THAT(
      checkpoint_refusal(R"({"Version":"v1","MigState":{"Devices":[{"UUID":"a","MigMode":2}]}})"),
      HasSubstr("`MigMode` must be 0 or 1"));
  EXPECT_THAT(checkpoint_refusal(R"({"Version":"v1","MigState":{"Devices":[{"UUID":"a","MigMode":1,
                          "GpuInstances":[{"ProfileID":-1}]}]}})"),
              HasSubstr("`ProfileID` must be a number"));
}

TEST(MigCheckpoint, RefusesProfilesThatTheGpuDoesNotOffer) {
  const CheckpointGpu saved{.uuid = {"GPU-1"},
                            .enabled = true,
                            .instances = {{.profile = 12, .place = {0, 4}, .compute = {}}}};
  const auto layout = saved_layout(saved, gpu_for_test("H200"));
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code(), Errc::NotFound);
  EXPECT_THAT(layout.error().text(),
              HasSubstr("profile number 12, which NVIDIA H200 does not offer"));
}

}  // namespace
}  // namespace gantry::mig
