// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/describe.hpp"

#include "base/core/text.hpp"
#include "gpu/mig/mig_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::HasSubstr;

std::string plan_text(const MigGpu& gpu, std::string_view words, std::size_t width = 80) {
  const auto decision = solve(gpu, layout_for_test(words));
  const auto* plan = std::get_if<LayoutPlan>(&decision);
  return plan == nullptr ? "refused" : describe_plan(gpu, *plan, width);
}

TEST(MigPicture, ShowsEachSlice) {
  const auto gpu = gpu_for_test("H200", "3g.71gb@0,2g.35gb@4,1g.18gb@6");
  EXPECT_EQ(describe_gpu(gpu, 62), "GPU 0  NVIDIA H200   [3g.71gb           ][2g.35gb ][1g ][ - ]");
  EXPECT_EQ(describe_gpu(gpu, 200),
            "GPU 0  NVIDIA H200   [3g.71gb                           ][2g.35gb         ][1g.18gb][ "
            "-     ]");
}

TEST(MigPicture, NeverIsWiderThanAsked) {
  const auto gpu = gpu_for_test("H200", "7x1g.18gb");
  for (std::size_t width = 0; width < 120; ++width)
    EXPECT_LE(describe_gpu(gpu, width).size(), width);
}

TEST(MigPicture, SaysWhyThereIsNone) {
  auto gpu = gpu_for_test("H200");
  gpu.current = model::MigMode::Disabled;
  EXPECT_EQ(describe_gpu(gpu), "GPU 0  NVIDIA H200   MIG off");
  gpu.current = model::MigMode::Unsupported;
  EXPECT_EQ(describe_gpu(gpu), "GPU 0  NVIDIA H200   no MIG");
}

TEST(MigPicture, MarksWhatChanges) {
  const auto gpu = gpu_for_test("H200", "3g.71gb@4,1g.18gb@0");
  const auto decision = solve(gpu, layout_for_test("3g.71gb,1g.35gb@0"));
  const auto& plan = std::get<LayoutPlan>(decision);
  const auto before = present_boxes(gpu, plan);
  EXPECT_EQ(before.front(), (SliceBox{{0, 1}, "1g.18gb", SliceBox::Change::Destroy}));
  EXPECT_EQ(before.back(), (SliceBox{{4, 4}, "3g.71gb", SliceBox::Change::None}));
  const auto planned = planned_boxes(gpu, plan);
  EXPECT_EQ(planned.front(), (SliceBox{{0, 2}, "1g.35gb", SliceBox::Change::Create}));
  EXPECT_EQ(planned[1], (SliceBox{{2, 1}, "", SliceBox::Change::None}));
}

TEST(MigDescribe, SaysWhatAPlanDoes) {
  const auto gpu = gpu_for_test("H200", "1g.18gb@0,1g.18gb@1,2g.35gb@2,3g.71gb@4");
  EXPECT_EQ(plan_text(gpu, "3g.71gb,2x1g.18gb,1g.35gb"),
            R"(GPU 0  NVIDIA H200   [1g   ][1g   ][2g.35gb     ][3g.71gb                   ]
                ->   [1g   ][1g   ][1g.35gb     ][3g.71gb                   ]
  keep    1g.18gb at memory slice 0: MIG-0
  keep    1g.18gb at memory slice 1: MIG-1
  keep    3g.71gb at memory slices 4-7: MIG-3
  destroy 2g.35gb at memory slices 2-3: MIG-2
  create  1g.35gb at memory slices 2-3
)");
}

TEST(MigDescribe, ShowsComputeInstances) {
  const auto gpu = gpu_for_test("H200", "3g.71gb@4=1+1+1");
  const auto text = plan_text(gpu, "3g.71gb=2+1,1g.18gb=0");
  EXPECT_THAT(text, HasSubstr("  keep    3g.71gb at memory slices 4-7: MIG-2\n"));
  EXPECT_THAT(text, HasSubstr("  destroy 1c.3g.71gb in it: MIG-0\n"));
  EXPECT_THAT(text, HasSubstr("  create  2c.3g.71gb in it at compute slices 0-1\n"));
  EXPECT_THAT(text, HasSubstr("no compute instances"));
}

TEST(MigDescribe, SaysThatNothingChanges) {
  const auto gpu = gpu_for_test("H200", "3g.71gb");
  EXPECT_THAT(plan_text(gpu, "3g.71gb"), HasSubstr("  nothing changes\n"));
}

TEST(MigDescribe, ShowsAChangeOfTheMode) {
  const auto gpu = gpu_for_test("H200", "3g.71gb");
  const auto text = plan_text(gpu, "off");
  EXPECT_THAT(text, HasSubstr("->   MIG off\n"));
  EXPECT_THAT(text, HasSubstr("  mode    MIG off\n"));
  EXPECT_THAT(text, HasSubstr("  destroy 3g.71gb at memory slices 4-7: MIG-0\n"));
}

TEST(MigDescribe, WrapsLongLines) {
  auto gpu = gpu_for_test("H200", "7g.141gb=1+1+1+1+1+1+1");
  for (auto& compute : gpu.instances[0].compute)
    compute.uuid.text += "-4aa1-5b1c-9a2e-0123456789ab";
  for (const auto line : lines(plan_text(gpu, "3g.71gb", 60))) EXPECT_LE(line.size(), 60U) << line;
}

TEST(MigDescribe, MakesForeignTextsSafe) {
  MigGpu gpu{.name = "a\x1b[2J", .current = model::MigMode::Disabled};
  EXPECT_THAT(describe_gpu(gpu), HasSubstr("a\\x1b[2J"));
}

}  // namespace
}  // namespace gantry::mig
