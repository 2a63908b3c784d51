// SPDX-License-Identifier: Apache-2.0
#include "container/publish/refresh.hpp"

#include "container/driver_dir/current.hpp"
#include "container/plan/capabilities.hpp"
#include "gpu/model/inventory_json.hpp"
#include "support/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::publish {
namespace {

using ::testing::HasSubstr;

RefreshOptions options_now() {
  RefreshOptions options;
  options.spec.capabilities = *plan::parse_capabilities("compute,utility");
  options.nvml = probe::NvmlUse::ForMig;
  return options;
}

TEST(Refresh, AllThreeAreThereAfterwards) {
  const test::Machine machine("h200x8");
  const auto done = refresh(machine.host(), options_now());
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(done->devices, 17U);
  const auto host = machine.host();
  EXPECT_TRUE(driver_dir::current(host).ok());
  EXPECT_TRUE(host.exists(kSpecPath));
  EXPECT_TRUE(model::inventory_from_json(*host.read(probe::kInventoryPath)).ok());
}

TEST(Refresh, ASecondTimeTheSpecificationIsLeftAlone) {
  const test::Machine machine("h200x8");
  ASSERT_TRUE(refresh(machine.host(), options_now())->spec_changed);
  const auto again = refresh(machine.host(), options_now());
  EXPECT_FALSE(again->spec_changed);
  EXPECT_EQ(again->driver.outcome, driver_dir::PublishOutcome::Unchanged);
}

TEST(Refresh, AMachineThatLostItsDriverKeepsWhatItHad) {
  test::Machine machine("h200");
  ASSERT_TRUE(refresh(machine.host(), options_now()).ok());
  const auto before = *machine.host().read(kSpecPath);
  machine.remove("/proc/driver/nvidia");
  EXPECT_FALSE(refresh(machine.host(), options_now()).ok());
  EXPECT_EQ(*machine.host().read(kSpecPath), before);
}

TEST(Refresh, AnErrorOfNvmlIsNoReasonToForgetInstances) {
  if (!test::Machine::has_libraries()) GTEST_SKIP() << "no simulated libraries";
  test::Machine machine("a100x8");
  ASSERT_TRUE(refresh(machine.host(), options_now()).ok());
  const auto before = *machine.host().read(kSpecPath);
  machine.remove("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.90.07");
  const auto failed = refresh(machine.host(), options_now());
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().text(), HasSubstr("NVML did not answer"));
  EXPECT_EQ(*machine.host().read(kSpecPath), before);
}

TEST(Refresh, AnotherToolsFileIsNamedAndTakenOverWhenAsked) {
  test::Machine machine("h200");
  constexpr auto kTheirs =
      "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n  - name: all\n    containerEdits:\n"
      "      env:\n        - A=b\n";
  machine.file("/etc/cdi/nvidia.yaml", kTheirs);
  auto options = options_now();
  const auto refused = refresh(machine.host(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Exists);
  EXPECT_THAT(refused.error().text(), HasSubstr("/etc/cdi/nvidia.yaml"));
  options.take_over = true;
  const auto done = refresh(machine.host(), options);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(done->moved.size(), 1U);
  EXPECT_EQ(*machine.host().read("/etc/cdi/nvidia.yaml.before-gantry"), kTheirs);
}

}  // namespace
}  // namespace gantry::publish
