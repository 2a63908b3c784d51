// SPDX-License-Identifier: Apache-2.0
// The session with the real gantry-nvml on simulated machines, and with programs that misbehave.
#include "gpu/mig_nvml/session.hpp"

#include "support/machine.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::mig_nvml {
namespace {

using namespace std::chrono_literals;
using model::MigMode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const mig::GpuProfile* find(const mig::MigGpu& gpu, std::string_view name) {
  for (const auto& profile : gpu.profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

class MigSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  }
};

TEST_F(MigSession, ReadsProfilesAndPlacesWhileTheModeIsOff) {
  const test::Machine machine("h200");
  const auto host = machine.host();
  auto session = *Session::start(host);
  const auto seen = session.read();
  ASSERT_TRUE(seen.ok()) << seen.error().text();
  ASSERT_THAT(seen->gpus, SizeIs(1));
  const auto& gpu = seen->gpus[0];
  EXPECT_EQ(gpu.current, MigMode::Disabled);
  EXPECT_EQ(gpu.device_id, 0x233510DEU);
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_THAT(gpu.instances, IsEmpty());
  const auto* half = find(gpu, "3g.71gb");
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->id, 9U);
  EXPECT_EQ(half->slices, 3U);
  EXPECT_EQ(half->memory_mib, 71424U);
  EXPECT_EQ(half->places, (std::vector<mig::Placement>{{0, 4}, {4, 4}}));
  ASSERT_THAT(half->compute, SizeIs(3));
  EXPECT_EQ(half->compute[0].name, "1c.3g.71gb");
  EXPECT_EQ(half->compute[2].name, "3g.71gb");
  ASSERT_NE(find(gpu, "1g.18gb+me"), nullptr);
}

TEST_F(MigSession, CreatesAndDestroysInstances) {
  const test::Machine machine("h200");
  const auto host = machine.host();
  auto session = *Session::start(host);
  const auto before = session.read();
  const auto pci = before->gpus[0].pci;
  EXPECT_EQ(*session.set_mode(pci, true), "");
  const auto& half = *find(before->gpus[0], "3g.71gb");
  const auto created = session.create_gpu_instance(pci, half.id, {4, 4});
  ASSERT_TRUE(created.ok()) << created.error().text();
  const auto compute = session.create_compute_instance(pci, *created, half.compute[2].id, {});
  ASSERT_TRUE(compute.ok()) << compute.error().text();
  auto gpu = session.read()->gpus[0];
  EXPECT_EQ(gpu.current, MigMode::Enabled);
  ASSERT_THAT(gpu.instances, SizeIs(1));
  EXPECT_EQ(gpu.instances[0].profile, "3g.71gb");
  EXPECT_EQ(gpu.instances[0].place, (mig::Placement{4, 4}));
  ASSERT_THAT(gpu.instances[0].compute, SizeIs(1));
  EXPECT_EQ(gpu.instances[0].compute[0].profile, "3g.71gb");
  EXPECT_THAT(gpu.instances[0].compute[0].uuid.text, HasSubstr("MIG-"));
  EXPECT_EQ(session.destroy_gpu_instance(pci, *created).error().code(), Errc::Busy);
  EXPECT_TRUE(session.destroy_compute_instance(pci, *created, *compute).ok());
  EXPECT_TRUE(session.destroy_gpu_instance(pci, *created).ok());
  EXPECT_THAT(session.read()->gpus[0].instances, IsEmpty());
}

TEST_F(MigSession, TellsWhyTheDriverRefuses) {
  const test::Machine machine("h200");
  const auto host = machine.host();
  auto session = *Session::start(host);
  const auto pci = session.read()->gpus[0].pci;
  const auto created = session.create_gpu_instance(pci, 9, {0, 4});
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code(), Errc::Unsupported);
  EXPECT_THAT(created.error().text(), HasSubstr("create-gpu-instance"));
  EXPECT_THAT(created.error().text(), HasSubstr("NVML_ERROR_NOT_SUPPORTED"));
  const auto other = session.set_mode(*model::PciAddress::parse("0000:ff:00.0"), true);
  EXPECT_EQ(other.error().code(), Errc::NotFound);
}

TEST_F(MigSession, ReadsTheInstancesOfEachCard) {
  const test::Machine machine("a100x8");
  const auto host = machine.host();
  auto session = *Session::start(host);
  const auto seen = session.read();
  ASSERT_TRUE(seen.ok()) << seen.error().text();
  ASSERT_THAT(seen->gpus, SizeIs(8));
  EXPECT_THAT(seen->gpus[0].instances, SizeIs(7));
  EXPECT_THAT(seen->gpus[1].instances, SizeIs(4));
  EXPECT_EQ(seen->gpus[2].current, MigMode::Disabled);
}

TEST_F(MigSession, OnAMachineWithoutMigSaysUnsupported) {
  const test::Machine machine("t4x4");
  const auto host = machine.host();
  auto session = *Session::start(host);
  const auto seen = session.read();
  ASSERT_TRUE(seen.ok()) << seen.error().text();
  ASSERT_THAT(seen->gpus, SizeIs(4));
  EXPECT_EQ(seen->gpus[0].current, MigMode::Unsupported);
  EXPECT_THAT(seen->gpus[0].profiles, IsEmpty());
}

TEST_F(MigSession, WithoutADriverSaysWhy) {
  test::Machine machine("nouveau");
  const auto host = machine.host();
  auto session = *Session::start(host);
  const auto seen = session.read();
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().code(), Errc::NotFound) << seen.error().text();
}

Result<MigMachine> read_from(const std::string& how) {
  const auto host = *sys::Host::at("/");
  auto session =
      Session::start(host, {.program = {test::built("test-programs/mig_nvml_program"), how},
                            .start_deadline = 300ms,
                            .read_deadline = 300ms});
  EXPECT_TRUE(session.ok());
  auto first = session->read();
  EXPECT_FALSE(session->read().ok()) << "after a failure nothing is asked any more";
  return first;
}

TEST(MigSessionWithout, AnAnswerIsATimeout) {
  const auto seen = read_from("silent");
  EXPECT_EQ(seen.error().code(), Errc::Timeout);
  EXPECT_THAT(seen.error().text(), HasSubstr("the driver hangs"));
}

TEST(MigSessionWithout, AValidAnswerIsInternal) {
  for (const auto* how : {"garbage", "endless", "crash"}) {
    const auto seen = read_from(how);
    EXPECT_EQ(seen.error().code(), Errc::Internal) << how << ": " << seen.error().text();
  }
  EXPECT_THAT(read_from("crash").error().text(), HasSubstr("Killed"));
}

}  // namespace
}  // namespace gantry::mig_nvml
