// SPDX-License-Identifier: Apache-2.0
#include "container/oci/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

config::Settings with_policy(std::string environment) {
  config::Settings settings;
  settings.gantry.environment = std::move(environment);
  return settings;
}

Decision decide_for_all(const config::Settings& settings, Container container = {},
                        const RequestLookups& lookups = {}) {
  if (container.env.empty()) container.env = {"NVIDIA_VISIBLE_DEVICES=all"};
  auto decision = decide_request(container, settings, lookups);
  EXPECT_TRUE(decision.ok());
  return *std::move(decision);
}

TEST(Policy, AnyLetsTheEnvironmentAsk) {
  EXPECT_THAT(decide_for_all(with_policy("any")).request.devices, ElementsAre("all"));
}

TEST(Policy, PrivilegedLooksAtTheBoundingSet) {
  for (const auto& settings : [] {
         config::Settings old;
         old.accept_envvar_when_unprivileged = false;
         return std::vector{with_policy("privileged"), old};
       }()) {
    const auto refused = decide_for_all(settings);
    EXPECT_TRUE(refused.request.is_empty());
    ASSERT_THAT(refused.warnings, SizeIs(1));
    EXPECT_THAT(refused.warnings[0], HasSubstr("NVIDIA_VISIBLE_DEVICES=all is ignored"));
    EXPECT_THAT(decide_for_all(settings, {.privileged = true}).request.devices, ElementsAre("all"));
  }
}

TEST(Policy, NeverIsForPrivilegedContainersToo) {
  EXPECT_TRUE(decide_for_all(with_policy("never"), {.privileged = true}).request.is_empty());
}

TEST(Policy, AnnotationsCountWhateverTheEnvironmentMay) {
  const auto decision =
      decide_for_all(with_policy("never"), {.annotations = {{"cdi.k8s.io/a", "nvidia.com/gpu=0"}}});
  EXPECT_THAT(decision.request.cdi_devices, ElementsAre("nvidia.com/gpu=0"));
}

TEST(Policy, GroupsAndImexFollowTheEnvironmentPolicy) {
  const Container container{.env = {"NVIDIA_GDS=enabled", "NVIDIA_IMEX_CHANNELS=3"},
                            .annotations = {{"cdi.k8s.io/a", "nvidia.com/gpu=0"}}};
  const auto decision = decide_for_all(with_policy("never"), container);
  EXPECT_THAT(decision.request.groups, SizeIs(0));
  EXPECT_THAT(decision.request.imex_channels, SizeIs(0));
}

TEST(Policy, InAPodAnAnnotationIsNoGrant) {
  // CRI-O hands a pod's own annotations on to its containers.
  const auto decision = decide_for_all({}, {.annotations = {{"cdi.k8s.io/a", "nvidia.com/gpu=all"}},
                                            .pod = PodContainer{"uid", "main"}});
  EXPECT_TRUE(decision.request.is_empty());
}

class KubernetesPolicy : public ::testing::Test {
 protected:
  Container container(const std::string& env) const {
    return {.env = {"NVIDIA_VISIBLE_DEVICES=" + env},
            .privileged = true,
            .pod = PodContainer{"uid", "main"}};
  }
  RequestLookups granting(const std::vector<std::string>& devices) const {
    return {.grant = [devices](const PodContainer& pod) -> Result<Grant> {
              if (pod.uid != "uid" || pod.container != "main") return Error(Errc::NotFound, "no");
              return Grant{.devices = model::to_uuids(devices)};
            },
            .uuid = [](std::string_view id) { return id == "1" ? "GPU-b" : ""; }};
  }
};

TEST_F(KubernetesPolicy, AnImageThatSaysAllGetsNothingWithoutAGrant) {
  const auto decision = decide_for_all({}, container("all"));
  EXPECT_TRUE(decision.request.is_empty());
  ASSERT_THAT(decision.warnings, SizeIs(1));
  EXPECT_THAT(decision.warnings[0], HasSubstr("resources.limits"));
}

TEST_F(KubernetesPolicy, AllMeansAllThatWasGranted) {
  EXPECT_THAT(decide_for_all({}, container("all"), granting({"GPU-a", "GPU-b"})).request.devices,
              ElementsAre("GPU-a", "GPU-b"));
}

TEST_F(KubernetesPolicy, OnlyWhatWasGrantedIsGivenHoweverItIsNamed) {
  const auto decision = decide_for_all({}, container("GPU-x,1,0"), granting({"GPU-a", "GPU-b"}));
  EXPECT_THAT(decision.request.devices, ElementsAre("GPU-b"));
  EXPECT_THAT(decision.warnings, SizeIs(2));
}

TEST_F(KubernetesPolicy, ACdiNameOfAGrantedGpuStaysACdiName) {
  const auto granted = granting({"GPU-a", "GPU-b"});
  EXPECT_THAT(decide_for_all({}, container("nvidia.com/gpu=1"), granted).request.cdi_devices,
              ElementsAre("nvidia.com/gpu=GPU-b"));
  EXPECT_THAT(decide_for_all({}, container("nvidia.com/gpu=all"), granted).request.cdi_devices,
              ElementsAre("nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"));
  // The name of a granted GPU does not make another kind's device a granted one.
  const auto other = decide_for_all({}, container("acme.org/disk=GPU-a"), granted).request;
  EXPECT_THAT(other.devices, ElementsAre("GPU-a"));
  EXPECT_THAT(other.cdi_devices, SizeIs(0));
}

TEST_F(KubernetesPolicy, OfAShareIsItsSlotAndNoGpu) {
  const RequestLookups shares{.grant = [](const PodContainer&) -> Result<Grant> {
                                Grant grant;
                                grant.share = model::GrantShare{.name = "slot-1"};
                                return grant;
                              },
                              .uuid = [](std::string_view) { return "GPU-a"; }};
  const auto slot = decide_for_all({}, container("gantry.dev/share=slot-1"), shares);
  EXPECT_THAT(slot.request.cdi_devices, ElementsAre("gantry.dev/share=slot-1"));
  for (const auto* other : {"gantry.dev/share=slot-2", "all", "0", "nvidia.com/gpu=slot-1"})
    EXPECT_TRUE(decide_for_all({}, container(other), shares).request.is_empty()) << other;
}

TEST_F(KubernetesPolicy, NothingOfWhatWasAskedIsGranted) {
  EXPECT_TRUE(decide_for_all({}, container("GPU-x"), granting({"GPU-a"})).request.is_empty());
}

TEST_F(KubernetesPolicy, AnotherContainersGrantDoesNotCount) {
  auto other = container("all");
  other.pod->container = "side";
  EXPECT_TRUE(decide_for_all({}, other, granting({"GPU-a"})).request.is_empty());
}

TEST_F(KubernetesPolicy, AnUntrustedGrantIsNamed) {
  const RequestLookups forged{.grant = [](const PodContainer&) -> Result<Grant> {
    return Error(Errc::Denied, "grant.json belongs to user 7; chown root grant.json");
  }};
  const auto decision = decide_for_all({}, container("all"), forged);
  EXPECT_TRUE(decision.request.is_empty());
  ASSERT_THAT(decision.warnings, SizeIs(1));
  EXPECT_THAT(decision.warnings[0], HasSubstr("chown root grant.json"));
}

TEST_F(KubernetesPolicy, APodWithoutANameHasNoGrant) {
  auto nameless = container("all");
  nameless.pod = PodContainer{};
  const auto decision = decide_for_all({}, nameless, granting({"GPU-a"}));
  EXPECT_TRUE(decision.request.is_empty());
}

TEST_F(KubernetesPolicy, AnyAndNeverMeanWhatTheySay) {
  config::Settings settings;
  settings.gantry.kubernetes_environment = "any";
  EXPECT_THAT(decide_for_all(settings, container("all")).request.devices, ElementsAre("all"));
  settings.gantry.kubernetes_environment = "never";
  EXPECT_TRUE(decide_for_all(settings, container("all"), granting({"GPU-a"})).request.is_empty());
}

}  // namespace
}  // namespace gantry::oci
