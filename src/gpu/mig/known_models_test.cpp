// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/known_models.hpp"

#include "gpu/mig/profile_name.hpp"
#include "sim/machine/machine.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::HasSubstr;

std::vector<unsigned> starts_of(const std::vector<Placement>& places) {
  std::vector<unsigned> starts;
  starts.reserve(places.size());
  for (const auto& place : places) starts.push_back(place.start);
  return starts;
}

TEST(KnownModels, FindsModelsByName) {
  const auto gpu = known_gpu("h200");
  ASSERT_TRUE(gpu.ok());
  EXPECT_EQ(gpu->name, "NVIDIA H200");
  EXPECT_EQ(model_of(0x233510DE), "H200");
  EXPECT_EQ(model_of(1), "");
  const auto unknown = known_gpu("T4");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Errc::NotFound);
  EXPECT_THAT(unknown.error().text(), HasSubstr("known are A100-40GB, A100-80GB, A30, H100, H200"));
}

TEST(KnownModels, HaveNamesThatFitTheirSlices) {
  for (const auto& model : known_models()) {
    const auto gpu = *known_gpu(model);
    for (const auto& profile : gpu.profiles) {
      const auto name = parse_profile_name(profile.name);
      ASSERT_TRUE(name.ok()) << name.error().text();
      EXPECT_EQ(name->gpu_slices, profile.slices) << model << " " << profile.name;
      EXPECT_LE(profile.max, profile.places.size()) << model << " " << profile.name;
      EXPECT_EQ(profile.compute.back().name, profile.name);
    }
  }
}

// The simulated card was read from a real one.
TEST(KnownModels, AgreeWithTheSimulatedCards) {
  for (const auto& [machine_name, model] :
       {std::pair{"h200", "H200"}, std::pair{"a100x8", "A100-40GB"}}) {
    const auto machine = sim::load_machine(machine_name);
    ASSERT_TRUE(machine.ok());
    const auto gpu = *known_gpu(model);
    const auto& rows = machine->gpus[0].mig_profiles;
    ASSERT_EQ(rows.size(), gpu.profiles.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& ours = gpu.profiles[i];
      EXPECT_EQ(ours.name, rows[i].name);
      EXPECT_EQ(ours.id, rows[i].id);
      EXPECT_EQ(ours.max, rows[i].instances);
      EXPECT_EQ(ours.memory_mib, rows[i].memory_mib);
      EXPECT_EQ(ours.multiprocessors, rows[i].multiprocessors);
      EXPECT_EQ(starts_of(ours.places), rows[i].placements);
      EXPECT_EQ(ours.places[0].size, rows[i].memory_slices);
      EXPECT_EQ(ours.engines.decoder, static_cast<int>(rows[i].decoders));
      EXPECT_EQ(ours.engines.optical_flow, static_cast<int>(rows[i].ofas));
    }
  }
}

TEST(KnownModels, DivideGpuInstancesIntoComputeInstances) {
  const auto gpu = *known_gpu("A100-40GB");
  const auto& seven = gpu.profiles[6].compute;
  ASSERT_EQ(seven.size(), 5U);
  EXPECT_EQ(seven[0].name, "1c.7g.40gb");
  EXPECT_EQ(seven[0].max, 7U);
  EXPECT_EQ(seven[1].max, 3U);
  EXPECT_EQ(starts_of(seven[2].places), (std::vector<unsigned>{0, 4}));
  EXPECT_EQ(seven[3].max, 1U);
  EXPECT_EQ(seven[4].name, "7g.40gb");
  EXPECT_EQ(seven[4].id, 4U);
  const auto& four = gpu.profiles[5].compute;
  ASSERT_EQ(four.size(), 3U);  // 3 of 4 slices is not possible
  EXPECT_EQ(four[1].name, "2c.4g.20gb");
  EXPECT_EQ(starts_of(four[1].places), (std::vector<unsigned>{0, 2}));
}

TEST(KnownModels, CorrectTheCountsOfAnA30) {
  auto gpu = *known_gpu("A30");
  gpu.profiles[0].max = 7;
  correct_profiles(gpu);
  EXPECT_EQ(gpu.profiles[0].max, 4U);
  auto other = *known_gpu("H200");
  other.profiles[0].max = 9;
  correct_profiles(other);
  EXPECT_EQ(other.profiles[0].max, 9U);
}

}  // namespace
}  // namespace gantry::mig
