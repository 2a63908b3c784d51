// SPDX-License-Identifier: Apache-2.0
// Drivers that answer less or otherwise than the simulated one, with which mig_nvml is tested.
#include "gpu/nvml/mig_machine.hpp"

#include "support/fake_gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::nvml {
namespace {

using mig_nvml::MigRequest;
using model::MigMode;
using test::FakeGpu;
using test::FakeGpus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kFirst = "0000:01:00.0";

MigRequest request(MigRequest::Kind kind) {
  return {.kind = kind, .gpu = *model::PciAddress::parse(kFirst), .profile = 19, .place = {0, 1}};
}

nvmlReturn_t two_profiles(nvmlDevice_t /*device*/, unsigned number,
                          nvmlGpuInstanceProfileInfo_t* info) {
  if (number != NVML_GPU_INSTANCE_PROFILE_1_SLICE &&
      number != NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1)
    return NVML_ERROR_NOT_SUPPORTED;
  *info = {};
  info->id = number == NVML_GPU_INSTANCE_PROFILE_1_SLICE ? 19 : 20;
  info->sliceCount = 1;
  info->memorySizeMB = 16384;
  return NVML_SUCCESS;
}

TEST(MigMachine, OfAnOlderDriverComputesTheNamesOfProfiles) {
  const FakeGpus fake({FakeGpu{}});
  auto nvml = fake.nvml();
  nvml.nvmlDeviceGetGpuInstanceProfileInfoV = nullptr;
  nvml.nvmlDeviceGetGpuInstanceProfileInfo = two_profiles;
  const auto machine = read_mig_machine(nvml);
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  const auto& profiles = machine->gpus.at(0).profiles;
  ASSERT_THAT(profiles, SizeIs(2));
  EXPECT_EQ(profiles[0].name, "1g.18gb");
  EXPECT_EQ(profiles[1].name, "1g.18gb+me");
  EXPECT_EQ(profiles[1].id, 20U);
}

TEST(MigMachine, WhoseInstancesCannotBeReadIsAnError) {
  FakeGpus fake({FakeGpu{.mig_enabled = true}});
  auto nvml = fake.nvml();
  nvml.nvmlDeviceGetGpuInstanceProfileInfo = two_profiles;
  nvml.nvmlDeviceGetGpuInstances = [](nvmlDevice_t, unsigned, nvmlGpuInstance_t*, unsigned*) {
    return NVML_ERROR_NO_PERMISSION;
  };
  const auto machine = read_mig_machine(nvml);
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code(), Errc::Denied);
  EXPECT_THAT(machine.error().text(), HasSubstr("nvmlDeviceGetGpuInstances"));
}

TEST(MigMachine, LeavesOutAGpuThatIsLost) {
  FakeGpus fake({FakeGpu{}, FakeGpu{.uuid = "GPU-1", .bus_id = "00000000:02:00.0"}});
  fake.fault = [](std::string_view, int gpu, unsigned) {
    return gpu == 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
  };
  const auto machine = read_mig_machine(fake.nvml());
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  ASSERT_THAT(machine->gpus, SizeIs(1));
  EXPECT_EQ(machine->gpus[0].index, 1);
}

TEST(MigMachine, WithoutMigHasNoProfiles) {
  const FakeGpus fake({FakeGpu{.mig_capable = false}});
  const auto machine = read_mig_machine(fake.nvml());
  EXPECT_EQ(machine->gpus.at(0).current, MigMode::Unsupported);
  EXPECT_THAT(machine->gpus.at(0).profiles, IsEmpty());
}

TEST(MigRequests, ThatTheDriverDoesNotHaveAreUnsupported) {
  const FakeGpus fake({FakeGpu{.mig_enabled = true}});
  for (const auto kind :
       {MigRequest::Kind::SetMode, MigRequest::Kind::CreateGpuInstance,
        MigRequest::Kind::CreateComputeInstance, MigRequest::Kind::DestroyComputeInstance,
        MigRequest::Kind::DestroyGpuInstance}) {
    const auto answer = answer_mig(fake.nvml(), request(kind));
    EXPECT_FALSE(answer.done);
    EXPECT_EQ(answer.code, Errc::Unsupported) << to_string(kind) << ": " << answer.text;
  }
}

// A driver before 460 chooses the place itself.
TEST(MigRequests, CreateWithoutAPlaceOnAnOlderDriver) {
  const FakeGpus fake({FakeGpu{.mig_enabled = true, .mig = {{.uuid = "MIG-1"}}}});
  auto nvml = fake.nvml();
  nvml.nvmlDeviceCreateGpuInstance = [](nvmlDevice_t device, unsigned,
                                        nvmlGpuInstance_t* instance) {
    *instance = reinterpret_cast<nvmlGpuInstance_t>(0x200001);  // NOLINT: the fake's handle of it
    return device == nullptr ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
  };
  const auto answer = answer_mig(nvml, request(MigRequest::Kind::CreateGpuInstance));
  ASSERT_TRUE(answer.done) << answer.text;
  EXPECT_EQ(answer.created, 1U);
}

TEST(MigRequests, TellWhyAModeIsPending) {
  const FakeGpus fake({FakeGpu{}});
  auto nvml = fake.nvml();
  nvml.nvmlDeviceSetMigMode = [](nvmlDevice_t, unsigned, nvmlReturn_t* activation) {
    *activation = NVML_ERROR_RESET_REQUIRED;
    return NVML_SUCCESS;
  };
  const auto answer = answer_mig(nvml, request(MigRequest::Kind::SetMode));
  EXPECT_TRUE(answer.done);
  EXPECT_THAT(answer.text, HasSubstr("NVML_ERROR_RESET_REQUIRED"));
}

}  // namespace
}  // namespace gantry::nvml
