// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/plan.hpp"

#include "vm/vgpu/vgpu_machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::vgpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An A10 with `vfs` enabled virtual functions and these vGPUs on the first of them.
VgpuGpu a10(const std::vector<std::string>& types, unsigned vfs = 8) {
  VgpuGpu gpu{.address = first_gpu(), .vendor = 0x10de, .device = 0x2236};
  gpu.framework = Framework::MdevOnVfs;
  gpu.total_vfs = gpu.enabled_vfs = vfs;
  gpu.framebuffer_mib = 24576;
  unsigned id = 590;
  for (const unsigned gigabytes : {2U, 4U, 8U, 12U, 24U}) {
    gpu.types.push_back({.id = fmt::format("nvidia-{}", id++),
                         .name = fmt::format("NVIDIA A10-{}Q", gigabytes),
                         .key = fmt::format("A10-{}Q", gigabytes),
                         .framebuffer_mib = gigabytes * 1024,
                         .max_instances = std::min(24 / gigabytes, vfs)});
  }
  for (unsigned i = 0; i < vfs; ++i) {
    auto address = first_gpu();
    address.function = static_cast<std::uint8_t>((4 + i) % 8);
    address.device = static_cast<std::uint8_t>((4 + i) / 8);
    gpu.parents.push_back({.address = address});
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    gpu.vgpus.push_back({.gpu = gpu.address,
                         .parent = gpu.parents[i].address,
                         .uuid = fmt::format("00000000-0000-4000-8000-{:012}", i),
                         .type_id = gpu.find_type(types[i])->id,
                         .type = types[i]});
  }
  return gpu;
}

VgpuGpu with_mig(unsigned instances) {
  auto gpu = a10({});
  gpu.types = {
      {.id = "nvidia-700", .name = "A100-1-5C", .key = "A100-1-5C", .framebuffer_mib = 5120}};
  gpu.types[0].available = instances;
  gpu.gpu_instances = instances;
  return gpu;
}

Result<Plan> plan(const VgpuGpu& gpu, const std::map<std::string, unsigned>& counts) {
  int number = 0;
  return plan_counts({gpu}, {{gpu.address, counts}},
                     [&number] { return fmt::format("11111111-0000-4000-8000-{:012}", number++); });
}

std::string text_of(const Result<Plan>& plan) {
  if (!plan.ok()) return plan.error().text();
  std::string text;
  for (const auto& step : plan->steps) text += describe(step) + "\n";
  return text;
}

TEST(Plan, KeepsWhatIsWantedAndCreatesTheRest) {
  const auto made = plan(a10({"A10-4Q", "A10-4Q"}), {{"A10-4Q", 3}});
  EXPECT_EQ(text_of(made), "create A10-4Q 11111111-0000-4000-8000-000000000000 on 0000:3b:00.6\n");
  EXPECT_EQ(made->result.size(), 3U);
  EXPECT_EQ(text_of(plan(a10({"A10-4Q"}), {{"A10-4Q", 1}})), "");
}

TEST(Plan, RemovesBeforeItCreates) {
  const auto made = plan(a10({"A10-4Q", "A10-4Q"}), {{"A10-8Q", 1}});
  EXPECT_EQ(text_of(made),
            "remove 00000000-0000-4000-8000-000000000000 (A10-4Q)\n"
            "remove 00000000-0000-4000-8000-000000000001 (A10-4Q)\n"
            "create A10-8Q 11111111-0000-4000-8000-000000000000 on 0000:3b:00.4\n");
}

TEST(Plan, ChecksEveryTypeBeforeItRemovesAnything) {
  EXPECT_THAT(text_of(plan(a10({"A10-4Q"}), {{"A10-8Q", 1}, {"A10-5Q", 1}})),
              AllOf(HasSubstr("GPU 0 (0000:3b:00.0) has no vGPU type A10-5Q"),
                    HasSubstr("gantry vgpu types --gpu 0")));
}

TEST(Plan, NamesHowManyFit) {
  const auto made = plan(a10({}), {{"A10-4Q", 7}});
  EXPECT_EQ(made.error().code(), Errc::Busy);
  EXPECT_THAT(made.error().text(), AllOf(HasSubstr("7 vGPUs of type A10-4Q: at most 6 fit"),
                                         HasSubstr("ask for 6 or fewer")));
  EXPECT_THAT(text_of(plan(a10({}, 4), {{"A10-4Q", 5}})),
              HasSubstr("4 of its 4 virtual functions are enabled"));
}

TEST(Plan, KeepsTheVgpuInUseAndRemovesTheIdleOne) {
  auto gpu = a10({"A10-4Q", "A10-4Q"});
  gpu.vgpus[1].holders = {4711};
  const auto made = plan(gpu, {{"A10-4Q", 1}});
  EXPECT_EQ(text_of(made), "remove 00000000-0000-4000-8000-000000000000 (A10-4Q)\n");
}

TEST(Plan, RefusesToRemoveAVgpuInUse) {
  auto gpu = a10({"A10-4Q"});
  gpu.vgpus[0].holders = {4711};
  const auto made = plan(gpu, {{"A10-8Q", 1}});
  EXPECT_EQ(made.error().code(), Errc::Busy);
  EXPECT_THAT(made.error().text(),
              AllOf(HasSubstr("in use by process 4711"), HasSubstr("ps -fp 4711")));
}

TEST(Plan, AllowsMixedSizesOnlyOnAnEmptyGpu) {
  EXPECT_EQ(text_of(plan(a10({"A10-4Q"}), {{"A10-4Q", 1}, {"A10-12Q", 1}})),
            "remove 00000000-0000-4000-8000-000000000000 (A10-4Q)\n"
            "allow mixed sizes on 0000:3b:00.0\n"
            "create A10-12Q 11111111-0000-4000-8000-000000000000 on 0000:3b:00.4\n"
            "create A10-4Q 11111111-0000-4000-8000-000000000001 on 0000:3b:00.5\n");
  EXPECT_EQ(text_of(plan(a10({"A10-12Q", "A10-4Q"}), {{"A10-4Q", 2}, {"A10-12Q", 1}})),
            "create A10-4Q 11111111-0000-4000-8000-000000000000 on 0000:3b:00.6\n");
}

// After a kill between two creations: the vGPU that exists may be in use already.
TEST(Plan, KnowsTheModeForMixedSizesByWhatIsStillOffered) {
  auto gpu = a10({"A10-12Q"});
  gpu.vgpus[0].holders = {4711};
  gpu.types[1].available = 3;
  EXPECT_EQ(text_of(plan(gpu, {{"A10-4Q", 1}, {"A10-12Q", 1}})),
            "create A10-4Q 11111111-0000-4000-8000-000000000000 on 0000:3b:00.5\n");
}

TEST(Plan, RefusesMixedSizesThatHaveNoPlace) {
  EXPECT_THAT(text_of(plan(a10({}), {{"A10-24Q", 1}, {"A10-2Q", 1}})),
              HasSubstr("1 A10-24Q, 1 A10-2Q together"));
}

TEST(Plan, RefusesMixedSizesOnTuringBeforeItRemovesAnything) {
  auto gpu = a10({"A10-4Q"});
  gpu.device = 0x1eb8;  // T4
  const auto made = plan(gpu, {{"A10-4Q", 1}, {"A10-8Q", 1}});
  EXPECT_EQ(made.error().code(), Errc::Unsupported);
  EXPECT_THAT(text_of(made), AllOf(HasSubstr("1 A10-8Q, 1 A10-4Q together: a Turing GPU"),
                                   HasSubstr("on a GPU of its own")));
  EXPECT_TRUE(plan(gpu, {{"A10-8Q", 2}}).ok()) << "another size for all of them is possible";
}

TEST(Plan, NeedsAGpuInstanceForEachMigBackedVgpu) {
  EXPECT_EQ(plan(with_mig(2), {{"A100-1-5C", 2}})->steps.size(), 2U);
  EXPECT_THAT(text_of(plan(with_mig(1), {{"A100-1-5C", 2}})),
              AllOf(HasSubstr("has 1 GPU instances, but 2"),
                    HasSubstr("nvidia-smi mig -i 0000:3b:00.0 -cgi 1g.5gb,1g.5gb")));
  EXPECT_THAT(text_of(plan(a10({}), {{"A10-1-5C", 1}})),
              AllOf(HasSubstr("needs MIG mode"), HasSubstr("-cgi 1g.5gb")));
}

// The type is listed without its instance; nothing may be removed for it.
TEST(Plan, RefusesAMigBackedTypeThatNoInstanceOffers) {
  auto gpu = a10({"A10-4Q"});
  gpu.types.push_back({.id = "nvidia-700", .name = "A10-1-6C", .key = "A10-1-6C"});
  EXPECT_THAT(text_of(plan(gpu, {{"A10-1-6C", 1}})),
              AllOf(HasSubstr("needs MIG mode"), HasSubstr("-cgi 1g.6gb")));
  gpu.types.back().available = 1;
  EXPECT_EQ(plan(gpu, {{"A10-1-6C", 1}})->steps.size(), 2U);
}

TEST(Plan, RefusesATimeSlicedTypeInMigMode) {
  auto gpu = with_mig(1);
  gpu.types.push_back({.id = "nvidia-701", .name = "A100-10C", .key = "A100-10C"});
  EXPECT_THAT(text_of(plan(gpu, {{"A100-10C", 1}})),
              AllOf(HasSubstr("a GPU in MIG mode has none"), HasSubstr("-mig 0")));
}

TEST(Plan, RefusesMixedSizesWithoutAPlaceBesideThoseThatStay) {
  auto gpu = a10({"A10-4Q", "A10-8Q"});
  gpu.vgpus[0].placement = 12;
  gpu.vgpus[1].placement = 0;
  const auto made = plan(gpu, {{"A10-4Q", 1}, {"A10-8Q", 2}});
  EXPECT_TRUE(made.ok()) << "the second 8 GiB go to 16";
  gpu.vgpus[0].placement = 20;
  EXPECT_THAT(text_of(plan(gpu, {{"A10-4Q", 1}, {"A10-8Q", 2}})),
              AllOf(HasSubstr("the remaining vGPUs occupy"), HasSubstr("remove --all --gpu 0")));
}

TEST(PlanExact, SaysThatTheFrameworkChanged) {
  auto gpu = a10({"A10-4Q"});
  const auto stored = spec_of(gpu.vgpus[0]);
  gpu.vgpus.clear();
  ASSERT_TRUE(plan_exact({gpu}, {gpu.address}, {stored}).ok());
  gpu.framework = Framework::VendorVfio;
  EXPECT_THAT(text_of(plan_exact({gpu}, {gpu.address}, {stored})),
              AllOf(HasSubstr("is a mediated device on 0000:3b:00.4"), HasSubstr("vendor-VFIO now"),
                    HasSubstr("gantry vgpu apply -f FILE")));
  gpu.framework = Framework::MdevOnVfs;
  gpu.parents.erase(gpu.parents.begin());
  EXPECT_EQ(plan_exact({gpu}, {gpu.address}, {stored}).error().code(), Errc::Unsupported);
}

TEST(PlanExact, SaysThatTheGpuIsGone) {
  const auto gpu = a10({"A10-4Q"});
  EXPECT_THAT(text_of(plan_exact({}, {gpu.address}, {spec_of(gpu.vgpus[0])})),
              AllOf(HasSubstr("which has stored vGPUs"), HasSubstr("intent.json")));
  EXPECT_TRUE(plan_exact({}, {gpu.address}, {}).ok());
}

TEST(Plan, TakesATypeWithoutItsAttributeWhereTheGpuDoesNotKnowIt) {
  EXPECT_THAT(text_of(plan(with_mig(1), {{"A100-1-5CME", 1}})), HasSubstr("create A100-1-5C "));
}

TEST(Plan, EnablesVirtualFunctionsAndNothingElse) {
  auto off = a10({});
  off.framework = Framework::VfsOff;
  off.parents.clear();
  auto other = a10({"A10-4Q"});
  other.address = second_gpu();
  other.index = 1;
  const auto made = plan_counts({off, other}, {{off.address, {{"A10-4Q", 1}}}, {other.address, {}}},
                                [] { return std::string(); });
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->again);
  EXPECT_EQ(text_of(made), "enable 8 virtual functions of 0000:3b:00.0\n");
  EXPECT_THAT(plan(off, {})->steps, IsEmpty()) << "nothing is wanted, so nothing is enabled";
}

TEST(Plan, SaysWhyAGpuHasNoVgpus) {
  VgpuGpu none{.address = first_gpu()};
  none.problem = "no driver is bound to it";
  EXPECT_EQ(plan(none, {{"A10-4Q", 1}}).error().code(), Errc::Unsupported);
  EXPECT_THAT(text_of(plan(none, {{"A10-4Q", 1}})), HasSubstr("no driver is bound to it"));
  EXPECT_TRUE(plan(none, {}).ok());
}

TEST(PlanAddition, RemovesNothing) {
  const auto gpu = a10({"A10-4Q"});
  const auto add = [&](Addition addition) {
    addition.gpu = gpu.address;
    return plan_addition({gpu}, addition, [] { return std::string("u"); });
  };
  EXPECT_EQ(text_of(add({.type = "A10-4Q"})), "create A10-4Q u on 0000:3b:00.5\n");
  EXPECT_THAT(text_of(add({.type = "A10-8Q"})),
              AllOf(HasSubstr("vGPUs of one size"), HasSubstr("gantry vgpu remove --all --gpu 0")));
  EXPECT_THAT(text_of(add({.type = "A10-4Q", .uuid = "xyz"})), HasSubstr("`xyz` is not a UUID"));
  EXPECT_THAT(text_of(add({.type = "A10-4Q", .uuid = gpu.vgpus[0].uuid})),
              HasSubstr("exists already on GPU 0"));
  EXPECT_THAT(text_of(add({.type = "A10-4Q", .count = 6})), HasSubstr("at most 6 fit"));
}

TEST(PlanAddition, RefusesWrongWordsBeforeItEnablesVirtualFunctions) {
  auto off = a10({});
  off.framework = Framework::VfsOff;
  off.parents.clear();
  const auto add = [&](Addition addition) {
    addition.gpu = off.address;
    return plan_addition({off}, addition, [] { return std::string("u"); });
  };
  EXPECT_EQ(add({.type = "A10-4Q"})->steps.size(), 1U);
  EXPECT_THAT(text_of(add({.type = "A10"})), HasSubstr("`A10` is not the name of a vGPU type"));
  EXPECT_THAT(text_of(add({.type = "A10-4Q", .uuid = "xyz"})), HasSubstr("`xyz` is not a UUID"));
}

TEST(PlanRemoval, NamesWhatDoesNotExist) {
  const auto gpu = a10({"A10-4Q", "A10-4Q"});
  EXPECT_THAT(text_of(plan_removal({gpu}, {"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"})),
              AllOf(HasSubstr("there is no vGPU 83b8f4f2"), HasSubstr("gantry vgpu list")));
  const auto made = plan_removal({gpu}, {gpu.vgpus[0].uuid, gpu.vgpus[0].uuid});
  EXPECT_EQ(made->steps.size(), 1U);
  EXPECT_EQ(made->result.size(), 1U);
}

}  // namespace
}  // namespace gantry::vgpu
