// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/solve.hpp"

#include "gpu/mig/mig_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string solved(const MigGpu& gpu, std::string_view words,
                   const std::vector<model::GpuUuid>& held = {}) {
  return result_for_test(gpu, solve(gpu, layout_for_test(words), held));
}

LayoutPlan planned(const MigGpu& gpu, std::string_view words,
                   const std::vector<model::GpuUuid>& held = {}) {
  const auto decision = solve(gpu, layout_for_test(words), held);
  const auto* plan = std::get_if<LayoutPlan>(&decision);
  EXPECT_NE(plan, nullptr) << result_for_test(gpu, decision);
  return plan == nullptr ? LayoutPlan{} : *plan;
}

LayoutRefusal refused(const MigGpu& gpu, std::string_view words,
                      const std::vector<model::GpuUuid>& held = {}) {
  const auto decision = solve(gpu, layout_for_test(words), held);
  const auto* refusal = std::get_if<LayoutRefusal>(&decision);
  EXPECT_NE(refusal, nullptr) << result_for_test(gpu, decision);
  return refusal == nullptr ? LayoutRefusal{} : *refusal;
}

std::string nearest(const MigGpu& gpu, std::string_view words) {
  const auto refusal = refused(gpu, words);
  return refusal.nearest ? to_words(*refusal.nearest) : "none";
}

TEST(MigSolve, PlacesTheSevenSliceCombinations) {
  const auto gpu = gpu_for_test("A100-40GB");
  EXPECT_EQ(solved(gpu, "4g.20gb,3g.20gb"), "4g.20gb@0,3g.20gb@4");
  EXPECT_EQ(solved(gpu, "2x3g.20gb"), "3g.20gb@0,3g.20gb@4");
  EXPECT_EQ(solved(gpu, "3g.20gb,2g.10gb,2x1g.5gb"), "1g.5gb@0,1g.5gb@1,2g.10gb@2,3g.20gb@4");
  EXPECT_EQ(solved(gpu, "7g.40gb"), "7g.40gb@0");
  EXPECT_THAT(solved(gpu, "2x3g.20gb,1g.5gb"),
              HasSubstr("refused: these instances need 9 memory slices; the GPU has 8"));
}

TEST(MigSolve, LeavesTheMostRoomForLater) {
  const auto gpu = gpu_for_test("H200");
  // A 3g at 4 leaves room for a 4g; a 1g at 6 keeps both halves as large as possible.
  EXPECT_EQ(solved(gpu, "3g.71gb"), "3g.71gb@4");
  EXPECT_EQ(solved(gpu, "1g.18gb"), "1g.18gb@6");
  EXPECT_EQ(solved(gpu, "2g.35gb"), "2g.35gb@4");
}

TEST(MigSolve, KeepsWhatTheNewLayoutHas) {
  const auto gpu = gpu_for_test("H200", "3g.71gb,2g.35gb,2x1g.18gb");
  ASSERT_EQ(to_words(current_layout(gpu)), "1g.18gb@0,1g.18gb@1,2g.35gb@2,3g.71gb@4");
  const auto plan = planned(gpu, "3g.71gb,3x1g.18gb");
  ASSERT_THAT(plan.keep, SizeIs(3));
  EXPECT_THAT(plan.keep[0].keep, ElementsAre(gpu.instances[0].compute[0]));
  ASSERT_THAT(plan.destroy, SizeIs(1));
  EXPECT_EQ(plan.destroy[0], gpu.instances[2]);
  ASSERT_THAT(plan.create, SizeIs(1));
  EXPECT_EQ(plan.create[0].profile, "1g.18gb");
  EXPECT_EQ(plan.create[0].profile_id, 19U);
  EXPECT_EQ(plan.create[0].place, (Placement{2, 1}));
  EXPECT_THAT(plan.create[0].compute, ElementsAre(ComputeCreation{"1g.18gb", 0, {0, 1}}));
}

TEST(MigSolve, ChangesNothingIfTheLayoutIsThere) {
  const auto gpu = gpu_for_test("H200", "3g.71gb,2g.35gb,2x1g.18gb");
  EXPECT_TRUE(planned(gpu, "1g.18gb,3g.71gb,1g.18gb,2g.35gb").changes_nothing());
  EXPECT_TRUE(planned(gpu, to_words(current_layout(gpu))).changes_nothing());
}

TEST(MigSolve, KeepsComputeInstancesInAKeptGpuInstance) {
  const auto gpu = gpu_for_test("H200", "3g.71gb=1+1+1");
  const auto plan = planned(gpu, "3g.71gb=2+1", {});
  ASSERT_THAT(plan.keep, SizeIs(1));
  EXPECT_THAT(plan.keep[0].keep, ElementsAre(gpu.instances[0].compute[2]));
  EXPECT_THAT(plan.keep[0].destroy, SizeIs(2));
  EXPECT_THAT(plan.keep[0].create, ElementsAre(ComputeCreation{"2c.3g.71gb", 1, {0, 2}}));
}

TEST(MigSolve, PacksComputeInstancesIntoFewGpuInstances) {
  const auto gpu = gpu_for_test("H200");
  EXPECT_EQ(solved(gpu, "3x1c.3g.71gb"), "3g.71gb@4=1+1+1");
  EXPECT_EQ(solved(gpu, "4x1c.3g.71gb"), "1c.3g.71gb@0,3g.71gb@4=1+1+1");
  EXPECT_EQ(solved(gpu, "2x2c.3g.71gb,2x1c.3g.71gb"), "3g.71gb@0=2+1,3g.71gb@4=2+1");
  EXPECT_EQ(solved(gpu, "2x2c.4g.71gb"), "4g.71gb@0=2+2");
  EXPECT_THAT(solved(gpu, "7x1c.3g.71gb"), HasSubstr("refused: 3g.71gb three times does not fit"));
  EXPECT_THAT(solved(gpu, "60x1c.3g.71gb"), HasSubstr("refused: 3g.71gb 20 times does not fit"));
}

TEST(MigSolve, UsesMoreGpuInstancesForHeldComputeInstances) {
  const auto gpu = gpu_for_test("H200", "3g.71gb@0=1+1,3g.71gb@4=1+1");
  const std::vector<model::GpuUuid> both{{"MIG-0"}, {"MIG-3"}};
  EXPECT_EQ(solved(gpu, "2x1c.3g.71gb", {}), "3g.71gb@4=1+1");
  EXPECT_EQ(solved(gpu, "2x1c.3g.71gb", both), "1c.3g.71gb@0,1c.3g.71gb@4");
  EXPECT_TRUE(planned(gpu, "4x1c.3g.71gb").changes_nothing());
}

TEST(MigSolve, NeverDestroysAHeldInstance) {
  const auto gpu = gpu_for_test("H200", "1g.18gb@0,1g.18gb@1,2g.35gb@2,3g.71gb@4");
  EXPECT_EQ(solved(gpu, "1g.18gb", {}), "1g.18gb@0");
  EXPECT_EQ(solved(gpu, "1g.18gb", {{"MIG-1"}}), "1g.18gb@1");
  const auto refusal = refused(gpu, "4g.71gb,3g.71gb", {{"MIG-2"}, {"MIG-3"}});
  EXPECT_EQ(refusal.reason, "an instance is in use and would be destroyed: MIG-2 (2g.35gb)");
  ASSERT_THAT(refusal.held, SizeIs(1));
  const auto error = refusal.to_error(gpu);
  EXPECT_EQ(error.code(), Errc::Busy);
  EXPECT_THAT(error.text(), HasSubstr("GPU 0: an instance is in use"));
  EXPECT_THAT(refused(gpu, "off", {{"MIG-1"}}).held, SizeIs(1));
}

TEST(MigSolve, TurnsMigModeOffAndOn) {
  auto gpu = gpu_for_test("H200", "3g.71gb");
  const auto off = planned(gpu, "off");
  EXPECT_TRUE(off.changes_mode);
  EXPECT_EQ(off.mode, model::MigMode::Disabled);
  EXPECT_THAT(off.destroy, SizeIs(1));
  gpu = after(gpu, off);
  EXPECT_TRUE(planned(gpu, "off").changes_nothing());
  const auto on = planned(gpu, "on");
  EXPECT_TRUE(on.changes_mode);
  EXPECT_FALSE(on.changes_instances());
  gpu.pending = model::MigMode::Enabled;  // a reset would turn it on
  EXPECT_TRUE(planned(gpu, "off").changes_mode);
  gpu.current = model::MigMode::Unsupported;
  EXPECT_EQ(solved(gpu, "on"), "refused: NVIDIA H200 has no MIG");
  EXPECT_TRUE(planned(gpu, "off").changes_nothing());
}

TEST(MigSolve, CountsMediaExtensionsOnce) {
  const auto h200 = gpu_for_test("H200");
  EXPECT_EQ(solved(h200, "1g.18gb+me,6x1g.18gb").substr(0, 8), "1g.18gb@");
  EXPECT_THAT(solved(h200, "2x1g.18gb+me"),
              HasSubstr("1g.18gb+me twice does not fit: the GPU has room for one"));
  const auto a30 = gpu_for_test("A30");
  EXPECT_THAT(solved(a30, "1g.6gb+me,2g.12gb+me"),
              HasSubstr("only one instance of a GPU can have media extensions"));
  const auto rtx = gpu_for_test("RTX-PRO-6000");
  EXPECT_THAT(solved(rtx, "1g.24gb+me,1g.24gb+me.all"),
              HasSubstr("only one instance of a GPU can have media"));
  EXPECT_THAT(solved(rtx, "1g.24gb+me.all,1g.24gb"),
              HasSubstr("1g.24gb+me.all takes all media engines"));
  EXPECT_EQ(solved(rtx, "2g.48gb+me.all,2x1g.24gb-me"),
            "1g.24gb-me@0,1g.24gb-me@1,2g.48gb+me.all@2");
  EXPECT_EQ(solved(rtx, "1g.24gb+me,1g.24gb+gfx,1g.24gb-me,1g.24gb").find("refused"),
            std::string::npos);
}

TEST(MigSolve, HonoursPlaces) {
  const auto gpu = gpu_for_test("H200");
  EXPECT_EQ(solved(gpu, "3g.71gb@0,1g.18gb@4"), "3g.71gb@0,1g.18gb@4");
  EXPECT_THAT(solved(gpu, "3g.71gb@2"),
              HasSubstr("3g.71gb cannot begin at memory slice 2; it can begin at 0, 4"));
  EXPECT_THAT(solved(gpu, "3g.71gb@4,1g.18gb@5"),
              HasSubstr("these instances overlap wherever they are"));
  EXPECT_EQ(nearest(gpu, "3g.71gb@2"), "3g.71gb");
  EXPECT_EQ(nearest(gpu, "3g.71gb@4,1g.18gb@5"), "3g.71gb@4,1g.18gb");
}

TEST(MigSolve, NamesTheProfilesThatTheGpuHas) {
  const auto gpu = gpu_for_test("H200");
  EXPECT_THAT(solved(gpu, "3g.20gb"),
              HasSubstr("NVIDIA H200 has no profile 3g.20gb (did you mean"));
  EXPECT_THAT(solved(gpu, "3c.4g.71gb"),
              HasSubstr("a compute instance of 4g.71gb cannot have 3 slices; it has 1 or 2 or 4"));
  EXPECT_THAT(solved(gpu, "3g.71gb=2+2"),
              HasSubstr("compute instances with 2 + 2 slices do not fit into one 3g.71gb"));
}

TEST(MigSolve, FindsTheNearestLayoutThatFits) {
  const auto gpu = gpu_for_test("H200");
  EXPECT_EQ(nearest(gpu, "3x3g.71gb"), "2x3g.71gb");
  EXPECT_EQ(nearest(gpu, "2x3g.71gb,1g.18gb"), "3g.71gb,2g.35gb,1g.18gb");
  EXPECT_EQ(nearest(gpu, "8x1g.18gb"), "7x1g.18gb");
  EXPECT_EQ(nearest(gpu, "7g.141gb,1g.18gb"), "4g.71gb,1g.18gb");
  EXPECT_EQ(nearest(gpu, "2x4g.71gb"), "4g.71gb,3g.71gb");
  EXPECT_EQ(nearest(gpu, "64x7g.141gb"), "7g.141gb");
  EXPECT_EQ(nearest(gpu, "2x1g.18gb+me"), "1g.18gb+me,1g.18gb");
  EXPECT_EQ(nearest(gpu_for_test("RTX-PRO-6000"), "2x1g.24gb+me.all"), "1g.24gb+me.all");
  const auto error = refused(gpu, "3x3g.71gb").to_error(gpu);
  EXPECT_EQ(error.code(), Errc::Invalid);
  EXPECT_EQ(
      error.text(),
      "GPU 0: 3g.71gb three times does not fit: the GPU has room for two; nearest: 2x3g.71gb");
}

TEST(MigSolve, SurvivesTablesThatAreNotThoseOfAGpu) {
  MigGpu gpu{.name = "odd", .current = model::MigMode::Enabled};
  EXPECT_THAT(solved(gpu, "1g.18gb"), HasSubstr("the GPU offers no MIG profiles"));
  gpu.profiles = {{.name = "1g.1gb", .slices = 1, .max = 64, .places = {}, .compute = {}}};
  EXPECT_THAT(solved(gpu, "1g.1gb"), HasSubstr("refused"));
  for (unsigned start = 0; start < 64; ++start) gpu.profiles[0].places.push_back({start, 1});
  gpu.profiles.push_back(
      {.name = "64g.64gb", .slices = 64, .max = 1, .places = {{0, 200}}, .compute = {}});
  gpu.profiles.push_back({.name = "??", .slices = 0, .max = 9, .places = {{90, 1}}, .compute = {}});
  EXPECT_THAT(solved(gpu, "32x1g.1gb"), HasSubstr("1g.1gb@"));
}

}  // namespace
}  // namespace gantry::mig
