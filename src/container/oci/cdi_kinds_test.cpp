// SPDX-License-Identifier: Apache-2.0
#include "container/oci/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Decision decided_kinds(const Container& container, const config::Settings& settings = {}) {
  auto decision = decide_request(container, settings, {});
  EXPECT_TRUE(decision.ok()) << decision.error().text();
  return *std::move(decision);
}

TEST(Kinds, AnImageMayNameNvidiasOwn) {
  const auto request =
      decided_kinds({.env = {"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0,nvidia.com/gds=all,"
                             "nvidia.com/imex-channel=0,nvidia.com/gpu.coherent=1"}})
          .request;
  EXPECT_THAT(request.devices, IsEmpty());
  EXPECT_THAT(request.cdi_devices, SizeIs(4));
}

TEST(Kinds, AnImageMayNotNameOtherVendorsDevices) {
  const auto decision = decided_kinds(
      {.env = {"NVIDIA_VISIBLE_DEVICES=acme.org/disk=sda,nvidia.com/gpu=0"}, .privileged = true});
  EXPECT_THAT(decision.request.cdi_devices, ElementsAre("nvidia.com/gpu=0"));
  ASSERT_THAT(decision.warnings, SizeIs(1));
  EXPECT_THAT(decision.warnings[0], HasSubstr("`acme.org/disk=sda` is not given"));
  EXPECT_THAT(decision.warnings[0], HasSubstr("cdi-kinds"));
}

TEST(Kinds, WithNothingLeftNothingIsAskedFor) {
  const auto decision = decided_kinds({.env = {"NVIDIA_VISIBLE_DEVICES=acme.org/disk=sda"}});
  EXPECT_TRUE(decision.request.is_empty());
  EXPECT_EQ(decision.request.source, model::RequestSource::None);
}

TEST(Kinds, TheConfigurationMayAllowMore) {
  config::Settings settings;
  settings.gantry.cdi_kinds = {"acme.org/nic"};
  const auto request =
      decided_kinds({.env = {"NVIDIA_VISIBLE_DEVICES=acme.org/nic=a,acme.org/disk=sda"}}, settings)
          .request;
  EXPECT_THAT(request.cdi_devices, ElementsAre("acme.org/nic=a"));
}

TEST(Kinds, ManagementIsForPrivilegedContainersWhateverTheConfigurationSays) {
  config::Settings settings;
  settings.gantry.cdi_kinds = {"management.nvidia.com/gpu"};
  Container container{.env = {"NVIDIA_VISIBLE_DEVICES=management.nvidia.com/gpu=all"}};
  const auto refused = decided_kinds(container, settings);
  EXPECT_TRUE(refused.request.is_empty());
  ASSERT_THAT(refused.warnings, SizeIs(1));
  EXPECT_THAT(refused.warnings[0], HasSubstr("privileged"));
  container.privileged = true;
  EXPECT_THAT(decided_kinds(container).request.cdi_devices,
              ElementsAre("management.nvidia.com/gpu=all"));
}

TEST(Kinds, WhoStartsTheContainerMayNameThemAll) {
  const auto request =
      decided_kinds(
          {.annotations = {{"cdi.k8s.io/a", "acme.org/disk=sda,management.nvidia.com/gpu=all"}}})
          .request;
  EXPECT_THAT(request.cdi_devices, SizeIs(2));
}

}  // namespace
}  // namespace gantry::oci
