// SPDX-License-Identifier: Apache-2.0
#include "container/oci/request.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

using model::Capability;
using model::RequestSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Decision decided(const Container& container, const config::Settings& settings = {}) {
  auto decision = decide_request(container, settings, {});
  EXPECT_TRUE(decision.ok()) << decision.error().text();
  return decision.ok() ? *std::move(decision) : Decision{};
}

model::ContainerRequest with_env(std::vector<std::string> env,
                                 const config::Settings& settings = {}) {
  return decided(Container{.env = std::move(env)}, settings).request;
}

TEST(Request, TheEnvironmentNamesDevices) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=1,GPU-a"});
  EXPECT_EQ(request.source, RequestSource::Environment);
  EXPECT_THAT(request.devices, ElementsAre("1", "GPU-a"));
  EXPECT_THAT(request.capabilities, ElementsAre(Capability::Utility, Capability::Compute));
}

TEST(Request, VoidEmptyAndUnsetAskForNothing) {
  for (const auto value : {"NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_VISIBLE_DEVICES=", "X=1"}) {
    EXPECT_TRUE(with_env({value}).is_empty()) << value;
  }
}

TEST(Request, AnOldImageMeansAllGpusAndCapabilities) {
  const auto request = with_env({"CUDA_VERSION=9.0.176"});
  EXPECT_THAT(request.devices, ElementsAre("all"));
  EXPECT_EQ(request.capabilities.size(), 7);
  EXPECT_THAT(request.requirements, ElementsAre("cuda>=9.0"));
  EXPECT_TRUE(with_env({"CUDA_VERSION=9.0", "NVIDIA_REQUIRE_CUDA=cuda>=9.0"}).is_empty());
  EXPECT_TRUE(with_env({"CUDA_VERSION=9.0", "NVIDIA_VISIBLE_DEVICES="}).is_empty());
}

TEST(Request, SwarmResourcesStandInForTheVariable) {
  config::Settings settings;
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
  config::Settings settings;
  settings.supported_driver_capabilities = "compute,utility";
  EXPECT_THAT(with_env({gpu, "NVIDIA_DRIVER_CAPABILITIES=all"}, settings).capabilities,
              ElementsAre(Capability::Compute, Capability::Utility));
  const auto refused =
      decide_request({.env = {gpu, "NVIDIA_DRIVER_CAPABILITIES=graphics"}}, settings, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("unsupported capabilities found in 'graphics'"));
  EXPECT_FALSE(decide_request({.env = {gpu, "NVIDIA_DRIVER_CAPABILITIES=cuda"}}, {}, {}).ok());
}

TEST(Request, RequirementsAreGathered) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=12.4",
                                 "NVIDIA_REQUIRE_X=driver>=470", "NVIDIA_REQUIRE_JETPACK=csv"});
  EXPECT_THAT(request.requirements, ElementsAre("cuda>=12.4", "driver>=470"));
  EXPECT_THAT(with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=12.4",
                        "NVIDIA_DISABLE_REQUIRE=True"})
                  .requirements,
              IsEmpty());
  config::Settings settings;
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
  EXPECT_THAT(decision.request.devices, IsEmpty());
  EXPECT_THAT(decision.request.cdi_devices,
              ElementsAre("nvidia.com/gpu=1", "nvidia.com/gpu=0", "acme.org/nic=x"));
  const auto wrong = decide_request({.annotations = {{"cdi.k8s.io/a", "0"}}}, {}, {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr("not a CDI device name"));
}

// As with NVIDIA's runtime, whose mode jit-cdi follows no annotations.
TEST(Request, AnnotationsCountOnlyInTheModesThatFollowThem) {
  const Container container{.annotations = {{"cdi.k8s.io/a", "nvidia.com/gpu=1"}}};
  for (const auto& [mode, counts] : {std::pair{"auto", true}, std::pair{"cdi", true},
                                     std::pair{"jit-cdi", false}, std::pair{"legacy", false}}) {
    config::Settings settings;
    settings.runtime.mode = mode;
    const auto decision = decide_request(container, settings, {});
    ASSERT_TRUE(decision.ok()) << mode;
    EXPECT_EQ(decision->request.source == RequestSource::Annotation, counts) << mode;
    if (counts) continue;
    EXPECT_THAT(decision->reasons, Contains(HasSubstr("annotations do not count"))) << mode;
  }
}

// Podman makes the annotations of an image those of the container.
TEST(Request, AnnotationsOfAnImageDoNotReplaceWhatItsUserAsksFor) {
  const Container container{.env = {"NVIDIA_VISIBLE_DEVICES=3"},
                            .annotations = {{"cdi.k8s.io/a", "nvidia.com/gpu=all"}},
                            .has_annotations_of_image = true};
  const auto decision = decide_request(container, {}, {});
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->request.source, RequestSource::Environment);
  EXPECT_THAT(decision->reasons, Contains(HasSubstr("podman run --device")));
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
  config::Settings accepting;
  accepting.accept_volume_mounts = true;
  const auto request = decided(container, accepting).request;
  EXPECT_EQ(request.source, RequestSource::VolumeMount);
  EXPECT_THAT(request.devices, ElementsAre("GPU-a"));
  EXPECT_THAT(request.cdi_devices, ElementsAre("nvidia.com/gpu=1", "acme.org/nic=a"));
  EXPECT_THAT(request.imex_channels, ElementsAre(7));
  EXPECT_THAT(decided(container).request.devices, ElementsAre("all"));
}

TEST(Request, QualifiedAndPlainNamesMayBeMixed) {
  config::Settings settings;
  settings.gantry.cdi_kinds = {"acme.org/nic"};
  const auto request =
      with_env({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all,acme.org/nic=a,0"}, settings);
  EXPECT_THAT(request.devices, ElementsAre("0"));
  EXPECT_THAT(request.cdi_devices, ElementsAre("nvidia.com/gpu=all", "acme.org/nic=a"));
}

TEST(Request, OurOwnKindMayNotBeMixedWithOthers) {
  EXPECT_THAT(with_env({"NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=2"}).devices,
              ElementsAre("2"));
  EXPECT_FALSE(decide_request({.env = {"NVIDIA_VISIBLE_DEVICES=runtime.nvidia.com/gpu=2,"
                                       "nvidia.com/gds=all"}},
                              {}, {})
                   .ok());
}

TEST(Request, InModeCdiNamesWithoutAKindHaveTheDefaultKind) {
  config::Settings settings;
  settings.runtime.cdi_default_kind = "acme.org/gpu";
  const std::vector<std::string> env{"NVIDIA_VISIBLE_DEVICES=0,acme.org/gpu=1,nvidia.com/gpu=2"};
  const auto ours = with_env(env, settings);
  EXPECT_THAT(ours.devices, ElementsAre("0"));
  EXPECT_THAT(ours.cdi_devices, ElementsAre("acme.org/gpu=1", "nvidia.com/gpu=2"));
  settings.runtime.mode = "cdi";
  const auto theirs = with_env(env, settings);
  EXPECT_THAT(theirs.devices, IsEmpty());
  EXPECT_THAT(theirs.cdi_devices,
              ElementsAre("acme.org/gpu=0", "acme.org/gpu=1", "nvidia.com/gpu=2"));
  EXPECT_THAT(with_env({"NVIDIA_VISIBLE_DEVICES=all"}, settings).cdi_devices,
              ElementsAre("acme.org/gpu=all"));
}

TEST(Request, MoreRequirementsThanAnImageNeedsAreRefused) {
  std::vector<std::string> env{"NVIDIA_VISIBLE_DEVICES=0"};
  for (int i = 0; i < 64; ++i) env.push_back(fmt::format("NVIDIA_REQUIRE_{}=cuda>=1.{}", i, i));
  EXPECT_THAT(with_env(env).requirements, SizeIs(64));
  env.emplace_back("NVIDIA_REQUIRE_63=cuda>=2.0");  // the last value counts
  EXPECT_EQ(with_env(env).requirements.back(), "cuda>=2.0");
  env.emplace_back("NVIDIA_REQUIRE_64=cuda>=1.0");
  const auto refused = decide_request({.env = env}, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Invalid);
  EXPECT_THAT(refused.error().text(), HasSubstr("more than 64 variables NVIDIA_REQUIRE_*"));
}

TEST(Request, ListsWithoutEndAreRefusedByTheVariablesName) {
  std::string many = "0";
  for (int i = 1; i <= 1024; ++i) many += fmt::format(",{}", i);
  for (const auto& env : {std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=" + many},
                          {"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_IMEX_CHANNELS=" + many}}) {
    const auto refused = decide_request({.env = env}, {}, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Errc::Invalid);
    EXPECT_THAT(refused.error().text(), HasSubstr(env.back().substr(0, env.back().find('='))));
  }
}

TEST(Request, GroupsAndChannelsGoWithDevices) {
  const auto request = with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_GDS=enabled",
                                 "NVIDIA_MOFED=disabled", "NVIDIA_IMEX_CHANNELS=0, 1048575,0"});
  EXPECT_THAT(request.groups, ElementsAre(model::DeviceGroup::Gds));
  EXPECT_THAT(request.imex_channels, ElementsAre(0, 1048575));
  EXPECT_TRUE(with_env({"NVIDIA_GDS=enabled", "NVIDIA_IMEX_CHANNELS=0"}).is_empty());
  EXPECT_FALSE(
      decide_request({.env = {"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_IMEX_CHANNELS=1048576"}}, {}, {})
          .ok());
  config::Settings ignoring;
  ignoring.features.ignore_imex_channel_requests = true;
  EXPECT_THAT(
      with_env({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_IMEX_CHANNELS=x"}, ignoring).imex_channels,
      IsEmpty());
}

TEST(Request, DividingAGpuNeedsAPrivilegedContainer) {
  const std::vector<std::string> env{"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_MIG_CONFIG_DEVICES=all"};
  const auto refused = decide_request({.env = env}, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_TRUE(decided({.env = env, .privileged = true}).request.mig_config);
}

}  // namespace
}  // namespace gantry::oci
