// SPDX-License-Identifier: Apache-2.0
#include "oci/request.hpp"

#include "oci/device_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

using model::Capability;
using model::RequestSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Decision decided(const Container& container, const settings::Settings& settings = {}) {
  auto decision = request_from(container, settings, {});
  EXPECT_TRUE(decision.ok()) << decision.error().text();
  return decision.ok() ? *std::move(decision) : Decision{};
}

model::Request with_env(std::vector<std::string> env, const settings::Settings& settings = {}) {
  return decided(Container{.env = std::move(env)}, settings).request;
}

TEST(DeviceList, IsTrimmedWithoutEmptiesAndDuplicates) {
  const auto list = [](std::string_view text) {
    return parse_device_list(std::vector<std::string_view>{text});
  };
  EXPECT_THAT(list(" 0, 2,,0 ,GPU-a"), ElementsAre("0", "2", "GPU-a"));
  EXPECT_THAT(list(""), IsEmpty());
  EXPECT_THAT(list("void"), IsEmpty());
  EXPECT_THAT(list("0,void,all"), IsEmpty());
  EXPECT_THAT(list("0,all,none"), ElementsAre("all"));
  EXPECT_THAT(list("none,all"), ElementsAre("none"));
  EXPECT_THAT(list("MIG-GPU-a/1/0,0:1"), ElementsAre("MIG-GPU-a/1/0", "0:1"));
}

TEST(DeviceList, KnowsQualifiedNames) {
  EXPECT_TRUE(is_qualified("nvidia.com/gpu=0"));
  for (const auto name : {"0", "GPU-a", "MIG-GPU-a/1/0", "a=b", "/b=c", "a/=c", "a/b=", "a=b/c"}) {
    EXPECT_FALSE(is_qualified(name)) << name;
  }
  EXPECT_EQ(qualified_parts("acme.org/nic=a=b").kind, "acme.org/nic");
  EXPECT_EQ(qualified_parts("acme.org/nic=a=b").name, "a=b");
}

TEST(Request, TheEnvironmentNamesDevices) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=1,GPU-a"});
  EXPECT_EQ(request.source, RequestSource::Environment);
  EXPECT_THAT(request.devices, ElementsAre("1", "GPU-a"));
  EXPECT_THAT(request.capabilities, ElementsAre(Capability::Utility, Capability::Compute));
}

TEST(Request, VoidEmptyAndUnsetAskForNothing) {
  for (const auto value : {"NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_VISIBLE_DEVICES=", "X=1"}) {
    EXPECT_TRUE(with_env({value}).wants_nothing()) << value;
  }
}

TEST(Request, AnOldImageMeansAllGpusAndCapabilities) {
  const auto request = with_env({"CUDA_VERSION=9.0.176"});
  EXPECT_THAT(request.devices, ElementsAre("all"));
  EXPECT_EQ(request.capabilities.size(), 7);
  EXPECT_THAT(request.requirements, ElementsAre("cuda>=9.0"));
  EXPECT_TRUE(with_env({"CUDA_VERSION=9.0", "NVIDIA_REQUIRE_CUDA=cuda>=9.0"}).wants_nothing());
  EXPECT_TRUE(with_env({"CUDA_VERSION=9.0", "NVIDIA_VISIBLE_DEVICES="}).wants_nothing());
}

TEST(Request, SwarmResourcesStandInForTheVariable) {
  settings::Settings settings;
  settings.swarm_resource = "DOCKER_RESOURCE_GPU, DOCKER_RESOURCE_OTHER";
  EXPECT_THAT(with_env({"DOCKER_RESOURCE_GPU=GPU-a", "NVIDIA_VISIBLE_DEVICES=all",
                        "DOCKER_RESOURCE_OTHER=GPU-b,GPU-a"},
                       settings)
                  .devices,
              ElementsAre("GPU-a", "GPU-b"));
  EXPECT_THAT(with_env({"NVIDIA_VISIBLE_DEVICES=0"}, settings).devices, ElementsAre("0"));
}

TEST(Request, CapabilitiesAreReadAndLimited) {
  const std::string gpu = "NVIDIA_VISIBLE_DEVICES=0";
  EXPECT_THAT(with_env({gpu, "NVIDIA_DRIVER_CAPABILITIES=video, utility,video"}).capabilities,
              ElementsAre(Capability::Video, Capability::Utility));
  EXPECT_EQ(with_env({gpu, "NVIDIA_DRIVER_CAPABILITIES=all"}).capabilities.size(), 7);
  EXPECT_EQ(with_env({gpu, "NVIDIA_DRIVER_CAPABILITIES="}).capabilities.size(), 2);
  settings::Settings settings;
  settings.supported_driver_capabilities = "compute,utility";
  EXPECT_THAT(with_env({gpu, "NVIDIA_DRIVER_CAPABILITIES=all"}, settings).capabilities,
              ElementsAre(Capability::Compute, Capability::Utility));
  const auto refused =
      request_from({.env = {gpu, "NVIDIA_DRIVER_CAPABILITIES=graphics"}}, settings, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("unsupported capabilities found in 'graphics'"));
  EXPECT_FALSE(request_from({.env = {gpu, "NVIDIA_DRIVER_CAPABILITIES=cuda"}}, {}, {}).ok());
}

TEST(Request, RequirementsAreGathered) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=12.4",
                                 "NVIDIA_REQUIRE_X=driver>=470", "NVIDIA_REQUIRE_JETPACK=csv"});
  EXPECT_THAT(request.requirements, ElementsAre("cuda>=12.4", "driver>=470"));
  EXPECT_THAT(with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=12.4",
                        "NVIDIA_DISABLE_REQUIRE=True"})
                  .requirements,
              IsEmpty());
  settings::Settings settings;
  settings.disable_require = true;
  EXPECT_THAT(
      with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=99"}, settings).requirements,
      IsEmpty());
}

TEST(Request, AnnotationsComeFirstAndMustBeQualified) {
  const Container container{.env = {"NVIDIA_VISIBLE_DEVICES=all"},
                            .annotations = {{"cdi.k8s.io/b", "acme.org/nic=x"},
                                            {"cdi.k8s.io/a", "nvidia.com/gpu=1, nvidia.com/gpu=0"},
                                            {"other/c", "nvidia.com/gpu=7"}}};
  const auto decision = decided(container);
  EXPECT_EQ(decision.request.source, RequestSource::Annotation);
  EXPECT_THAT(decision.request.devices, ElementsAre("1", "0"));
  EXPECT_THAT(decision.request.cdi_devices, ElementsAre("acme.org/nic=x"));
  const auto wrong = request_from({.annotations = {{"cdi.k8s.io/a", "0"}}}, {}, {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr("no CDI device name"));
}

TEST(Request, VolumeMountsCountWhereAcceptedAndByComponent) {
  const Container container{
      .env = {"NVIDIA_VISIBLE_DEVICES=all"},
      .mounts = {{"/dev/null", "/var/run/nvidia-container-devices/GPU-a"},
                 {"/dev/null", "/var/run/nvidia-container-devicesFOO/GPU-b"},
                 {"/tmp", "/var/run/nvidia-container-devices/GPU-c"},
                 {"/dev/null", "/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/1"},
                 {"/dev/null", "/var/run/nvidia-container-devices/cdi/acme.org/nic=a"},
                 {"/dev/null", "/var/run/nvidia-container-devices/imex/7"}}};
  settings::Settings accepting;
  accepting.accept_volume_mounts = true;
  const auto request = decided(container, accepting).request;
  EXPECT_EQ(request.source, RequestSource::VolumeMount);
  EXPECT_THAT(request.devices, ElementsAre("GPU-a", "1"));
  EXPECT_THAT(request.cdi_devices, ElementsAre("acme.org/nic=a"));
  EXPECT_THAT(request.imex_channels, ElementsAre(7));
  EXPECT_THAT(decided(container).request.devices, ElementsAre("all"));
}

TEST(Request, QualifiedAndPlainNamesMayBeMixed) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all,acme.org/nic=a,0"});
  EXPECT_THAT(request.devices, ElementsAre("all"));
  EXPECT_THAT(request.cdi_devices, ElementsAre("acme.org/nic=a"));
}

TEST(Request, OurOwnKindMayNotBeMixedWithOthers) {
  EXPECT_THAT(with_env({"NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=2"}).devices,
              ElementsAre("2"));
  EXPECT_FALSE(request_from({.env = {"NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=2,"
                                     "acme.org/nic=a"}},
                            {}, {})
                   .ok());
}

TEST(Request, GroupsAndChannelsGoWithDevices) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_GDS=enabled",
                                 "NVIDIA_MOFED=disabled", "NVIDIA_IMEX_CHANNELS=0, 1048575,0"});
  EXPECT_THAT(request.groups, ElementsAre(model::DeviceGroup::Gds));
  EXPECT_THAT(request.imex_channels, ElementsAre(0, 1048575));
  EXPECT_TRUE(with_env({"NVIDIA_GDS=enabled", "NVIDIA_IMEX_CHANNELS=0"}).wants_nothing());
  EXPECT_FALSE(
      request_from({.env = {"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_IMEX_CHANNELS=1048576"}}, {}, {})
          .ok());
  settings::Settings ignoring;
  ignoring.features.ignore_imex_channel_requests = true;
  EXPECT_THAT(
      with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_IMEX_CHANNELS=x"}, ignoring).imex_channels,
      IsEmpty());
}

TEST(Request, DividingAGpuNeedsAPrivilegedContainer) {
  const std::vector<std::string> env{"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_MIG_CONFIG_DEVICES=all"};
  const auto refused = request_from({.env = env}, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_TRUE(decided({.env = env, .privileged = true}).request.mig_config);
}

TEST(Grants, AreReadStrictly) {
  EXPECT_THAT(grant_from(R"({"devices": ["GPU-a"], "more": 1})")->devices, ElementsAre("GPU-a"));
  for (const auto text : {"", "{}", R"({"devices": "GPU-a"})", R"({"devices": [1]})"}) {
    EXPECT_FALSE(grant_from(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gantry::oci
