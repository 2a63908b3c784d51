// SPDX-License-Identifier: Apache-2.0
#include "container/plan/requirement.hpp"

#include "container/plan/machine_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status check(const model::Inventory& machine, const std::vector<std::string>& requirements) {
  const auto selection = select(machine, std::vector<std::string>{"0", "1"});
  return check_requirements(requirements, machine, selection->devices);
}

TEST(Requirement, OperatorsCompareVersionsNumberByNumber) {
  const auto machine = machine_for_test();  // driver 580.159.04, CUDA 13.0, arch 9.0
  for (const auto* holds : {"cuda>=12.4", "cuda=13.0", "cuda>=13", "cuda!=12.9", "cuda<13.1",
                            "cuda<=13.0", "driver>=470", "driver<1000", "driver>580.95.05",
                            "arch>=8.0", "arch=9.0", "brand=nvidiartx", "brand!=tesla", "", "  "}) {
    EXPECT_TRUE(check(machine, {holds}).ok()) << holds;
  }
  for (const auto* fails : {"cuda>=13.1", "cuda<13", "driver<470", "arch>9.0", "brand=tesla"}) {
    const auto status = check(machine, {fails});
    ASSERT_FALSE(status.ok()) << fails;
    EXPECT_EQ(status.error().code(), Errc::Unsupported) << fails;
  }
}

TEST(Requirement, ASpaceIsOrACommaIsAndVariablesMustAllHold) {
  const auto machine = machine_for_test();
  EXPECT_TRUE(check(machine, {"cuda>=13.1 brand=nvidiartx,driver>=570,driver<590"}).ok());
  EXPECT_FALSE(check(machine, {"cuda>=13.1 brand=tesla,driver>=570"}).ok());
  EXPECT_TRUE(check(machine, {"cuda>=12.0", "driver>=500"}).ok());
  EXPECT_FALSE(check(machine, {"cuda>=12.0", "driver>=600"}).ok());
}

TEST(Requirement, AFailureSaysWhatIsNeededWhatIsHereAndWhatHelps) {
  const auto status = check(machine_for_test(), {"cuda>=13.1 brand=tesla,driver>=590,driver<591"});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(
      status.error().text(),
      AllOf(HasSubstr("needs cuda>=13.1, this machine's driver 580.159.04 has 13.0"),
            HasSubstr("none of the 2 alternatives"), HasSubstr("NVIDIA_DISABLE_REQUIRE=1")));
  EXPECT_THAT(check(machine_for_test(), {"arch>=10.0"}).error().text(),
              HasSubstr("GPU 0 (NVIDIA H200) has arch 9.0"));
}

TEST(Requirement, EveryGpuOfTheContainerMustMeetIt) {
  auto machine = machine_for_test();
  machine.gpus[1].compute_capability = {{.major = 7, .minor = 5}};
  EXPECT_THAT(check(machine, {"arch>=8.0"}).error().text(), HasSubstr("GPU 1"));
}

TEST(Requirement, WithoutNvmlTheDriversBranchTellsCuda) {
  auto machine = machine_for_test();
  machine.driver.cuda_version.clear();
  EXPECT_TRUE(check(machine, {"cuda>=13.0"}).ok());
  EXPECT_FALSE(check(machine, {"cuda>=13.1"}).ok());
  EXPECT_EQ(newest_cuda_for_driver("550.90.07"), "12.4");
  EXPECT_EQ(newest_cuda_for_driver("999.1"), "");
}

TEST(Requirement, AnUnknownFactDoesNotFail) {
  auto machine = machine_for_test();
  for (auto& gpu : machine.gpus) {
    gpu.brand.clear();
    gpu.compute_capability.reset();
  }
  EXPECT_TRUE(check(machine, {"cuda>=12.0 brand=tesla"}).ok());
  const auto status = check(machine, {"cuda>=13.1 brand=tesla"});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("gantry cdi refresh"));
  EXPECT_TRUE(check(machine, {"cuda>=13.1,brand=tesla driver>=500"}).ok());
}

TEST(Requirement, WhatCannotBeReadIsAnErrorNotAYes) {
  for (const auto* text : {"cuda", "cuda>", "cuda=>1", "cuda~1", "cuda>=new", "color=red",
                           "brand>tesla", "cuda>=1.2.3.4.5", "cuda!1", ">=3"}) {
    const auto status = check(machine_for_test(), {text});
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.error().code(), Errc::Invalid) << text;
  }
  EXPECT_EQ(check(machine_for_test(), {std::string(100'000, 'x')}).error().code(), Errc::Invalid);
}

}  // namespace
}  // namespace gantry::plan
