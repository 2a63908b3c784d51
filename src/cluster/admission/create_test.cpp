// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/admission_for_test.hpp"
#include "cluster/admission/containers_internal.hpp"

namespace gantry::admission {
namespace {

using test::create;
using test::kPolicy;
using test::pod_text;
using test::refusal;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const Policy kMiB{.unit_mib = 1};

nlohmann::json limits(const test::AdmittedPod& admitted) {
  EXPECT_EQ(admitted.verdict.answer, Admission::Allowed) << admitted.verdict.message;
  return admitted.pod["spec"]["containers"][0]["resources"]["limits"];
}

TEST(Create, LeavesPodsWithoutGpusAlone) {
  const auto admitted = create(
      pod_text(
          {.limits = R"("cpu":1)",
           .container = R"(,"securityContext":{"privileged":true})",
           .spec =
               R"(,"nodeName":"n","volumes":[{"name":"v","hostPath":{"path":"/usr/local/nvidia"}}])",
           .metadata = R"(,"annotations":{"gantry.dev/placement":"x"})"}),
      {.unit_mib = 1, .scheduler_name = "gantry"});
  EXPECT_EQ(admitted.verdict.answer, Admission::Allowed);
  EXPECT_EQ(admitted.verdict.patch, "");
  EXPECT_THAT(admitted.verdict.warnings, IsEmpty());
}

TEST(Create, LeavesAGoodAskAlone) {
  for (const auto* good :
       {R"("aliyun.com/gpu-mem":8)", R"("nvidia.com/gpu":1)",
        R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"10k","nvidia.com/gpucores":30)"}) {
    const auto admitted = create(pod_text({good}));
    EXPECT_EQ(admitted.verdict.answer, Admission::Allowed) << admitted.verdict.message;
    EXPECT_EQ(admitted.verdict.patch, "");
    EXPECT_THAT(admitted.verdict.warnings, IsEmpty());
  }
}

TEST(Create, AddsTheGpuThatMemoryOrCoresAreOf) {
  EXPECT_EQ(limits(create(pod_text({R"("nvidia.com/gpumem":3000)"})))["nvidia.com/gpu"], "1");
  EXPECT_EQ(limits(create(pod_text({R"("nvidia.com/gpucores":30)"})))["nvidia.com/gpu"], "1");
  EXPECT_EQ(limits(create(pod_text({R"("nvidia.com/gpumem-percentage":50)"})))["nvidia.com/gpu"],
            "1");
}

TEST(Create, AddsASlotWhereMemoryIsCountedInMiB) {
  const auto admitted = create(pod_text({R"("aliyun.com/gpu-mem":"8192")"}), kMiB);
  EXPECT_EQ(limits(admitted)["gantry.dev/share"], "1");
  EXPECT_EQ(limits(admitted)["aliyun.com/gpu-mem"], "8192");
  EXPECT_FALSE(
      limits(create(pod_text({R"("nvidia.com/gpu":1)"}), kMiB)).contains("gantry.dev/share"));
}

TEST(Create, TakesASlotAwayWhereMemoryIsCountedInGiB) {
  const auto admitted = create(pod_text({R"("aliyun.com/gpu-mem":8,"gantry.dev/share":1)"}));
  EXPECT_FALSE(limits(admitted).contains("gantry.dev/share"));
  EXPECT_THAT(admitted.verdict.warnings, Contains(HasSubstr("gantry.dev/share is removed")));
}

TEST(Create, WritesLimitsWhereRequestsAreAlone) {
  const auto admitted = create(
      R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":1,"nvidia.com/gpu":2,"nvidia.com/gpumem":5}}}]}})");
  EXPECT_EQ(limits(admitted),
            nlohmann::json::parse(R"({"nvidia.com/gpu":2,"nvidia.com/gpumem":5})"));
  EXPECT_EQ(admitted.pod["spec"]["containers"][0]["resources"]["requests"].size(), 3U);
}

TEST(Create, SetsTheRuntimeClassIfOneIsConfigured) {
  const Policy by_class{.unit_mib = 1024, .runtime_class = "nvidia"};
  const auto share = create(pod_text({R"("aliyun.com/gpu-mem":8)"}), by_class);
  EXPECT_EQ(share.pod["spec"]["runtimeClassName"], "nvidia");
  const auto whole = create(pod_text({R"("nvidia.com/gpu":1)"}), by_class);
  EXPECT_EQ(whole.pod["spec"]["runtimeClassName"], "nvidia") << "it may be a slot";
  EXPECT_EQ(create(pod_text({R"("cpu":1)"}), by_class).verdict.patch, "");
  const auto none = create(pod_text({R"("aliyun.com/gpu-mem":8)"}));
  EXPECT_FALSE(none.pod["spec"].contains("runtimeClassName"));
  const auto other = create(
      pod_text({.limits = R"("aliyun.com/gpu-mem":8)", .spec = R"(,"runtimeClassName":"kata")"}),
      by_class);
  EXPECT_EQ(other.pod["spec"]["runtimeClassName"], "kata");
  EXPECT_THAT(other.verdict.warnings, Contains(HasSubstr("runtimeClassName kata is kept")));
}

TEST(Create, ChangesNothingTheSecondTime) {
  for (const auto* ask : {R"("nvidia.com/gpumem":3000)", R"("aliyun.com/gpu-mem":"8k")",
                          R"("alpha.kubernetes.io/nvidia-gpu":1)"}) {
    const auto once = create(pod_text({ask}), {.unit_mib = 1, .scheduler_name = "gantry"});
    ASSERT_NE(once.verdict.patch, "");
    const auto twice = create(once.pod.dump(), {.unit_mib = 1, .scheduler_name = "gantry"});
    EXPECT_EQ(twice.verdict.answer, Admission::Allowed);
    EXPECT_EQ(twice.verdict.patch, "");
  }
}

TEST(Create, RefusesBadAsksWithWhatToWrite) {
  EXPECT_THAT(
      refusal(create(pod_text({R"("nvidia.com/gpu":"0.5")"})), Admission::Invalid),
      HasSubstr(
          "container \"a\": nvidia.com/gpu: 0.5 is not a whole number; for a part of a GPU write"));
  EXPECT_THAT(refusal(create(pod_text({R"("nvidia.com/gpu":1,"aliyun.com/gpu-mem":4)"})),
                      Admission::Invalid),
              HasSubstr("or aliyun.com/gpu-mem alone"));
  EXPECT_THAT(
      refusal(
          create(pod_text(
              {.limits = R"("nvidia.com/gpu":1)",
               .metadata =
                   R"(,"annotations":{"gantry.dev/nodes":"pack","hami.io/node-scheduler-policy":"spread"})"})),
          Admission::Invalid),
      HasSubstr("contradict"));
}

TEST(Create, RefusesANodeByName) {
  EXPECT_THAT(
      refusal(create(pod_text({.limits = R"("nvidia.com/gpu":1)", .spec = R"(,"nodeName":"n1")"})),
              Admission::Denied),
      HasSubstr("nodeSelector: {kubernetes.io/hostname: n1}"));
}

TEST(Create, RefusesAnnotationsThatSayWhereAPodIsEvenOfTheScheduler) {
  for (const auto* key :
       {"gantry.dev/placement", "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_ASSIGNED",
        "hami.io/vgpu-devices-allocated", "hami.io/vgpu-node", "hami.io/bind-phase",
        "scheduler.framework.gpushare.allocation"}) {
    const auto pod = pod_text({.limits = R"("aliyun.com/gpu-mem":1)",
                               .metadata = fmt::format(R"(,"annotations":{{"{}":"1"}})", key)});
    EXPECT_THAT(refusal(create(pod), Admission::Denied),
                HasSubstr(fmt::format("annotation {} is written by the scheduler", key)));
    EXPECT_EQ(create(pod, kPolicy, R"({"username":"scheduler"})").verdict.answer,
              Admission::Denied);
  }
}

TEST(Create, RefusesAPrivilegedContainerThatAsksForAShare) {
  const std::string privileged = R"(,"securityContext":{"privileged":true})";
  EXPECT_THAT(
      refusal(create(pod_text({R"("aliyun.com/gpu-mem":1)", privileged})), Admission::Denied),
      HasSubstr("container \"a\" is privileged, so GPU limits cannot be enforced"));
  const auto whole = create(pod_text({R"("nvidia.com/gpu":1)", privileged}));
  EXPECT_EQ(whole.verdict.answer, Admission::Allowed);
  EXPECT_THAT(whole.verdict.warnings, Contains(HasSubstr("sees every GPU")));
  const auto beside = create(pod_text(
      {.limits = R"("aliyun.com/gpu-mem":1)",
       .spec = R"(,"initContainers":[{"name":"net","securityContext":{"privileged":true}}])"}));
  EXPECT_EQ(beside.verdict.answer, Admission::Allowed);
  EXPECT_THAT(beside.verdict.warnings, Contains(HasSubstr("container \"net\" is privileged")));
}

TEST(Create, LetsTheMirrorOfAStaticPodPassWhenAKubeletMakesIt) {
  const auto pod = pod_text({.limits = R"("nvidia.com/gpumem":1)",
                             .spec = R"(,"nodeName":"n")",
                             .metadata = R"(,"annotations":{"kubernetes.io/config.mirror":"h"})"});
  const auto admitted =
      create(pod, kPolicy,
             R"({"username":"system:node:n","groups":["system:nodes","system:authenticated"]})");
  EXPECT_EQ(admitted.verdict.answer, Admission::Allowed);
  EXPECT_EQ(admitted.verdict.patch, "");
  EXPECT_EQ(create(pod).verdict.answer, Admission::Denied);
}

TEST(Create, NamesTheSchedulerWhereOneIsConfigured) {
  const auto ask = R"("nvidia.com/gpu":1)";
  const Policy policy{.scheduler_name = "gantry"};
  EXPECT_EQ(create(pod_text({ask}), policy).pod["spec"]["schedulerName"], "gantry");
  EXPECT_EQ(
      create(pod_text({.limits = ask, .spec = R"(,"schedulerName":"default-scheduler")"}), policy)
          .pod["spec"]["schedulerName"],
      "gantry");
  const auto other =
      create(pod_text({.limits = ask, .spec = R"(,"schedulerName":"volcano")"}), policy);
  EXPECT_EQ(other.pod["spec"]["schedulerName"], "volcano");
  EXPECT_THAT(other.verdict.warnings, Contains(HasSubstr("schedulerName volcano is kept")));
  EXPECT_FALSE(create(pod_text({ask})).pod["spec"].contains("schedulerName"));
}

TEST(Create, WarnsOfWhatWorksAndIsOdd) {
  const auto warnings = [](const test::PodText& pod) {
    return create(pod_text(pod)).verdict.warnings;
  };
  EXPECT_THAT(
      warnings({R"("nvidia.com/gpu":1,"nvidia.com/gpumem":10,"nvidia.com/gpumem-percentage":50)"}),
      Contains(HasSubstr("gpumem is used, nvidia.com/gpumem-percentage is ignored")));
  EXPECT_THAT(warnings({R"("nvidia.com/gpu":1,"nvidia.com/gpumem":0)"}),
              Contains(HasSubstr("the container gets all memory")));
  EXPECT_THAT(warnings({R"("nvidia.com/gpu":1,"nvidia.com/gpumem":10,"nvidia.com/gpucores":100)"}),
              Contains(HasSubstr("no other pod can use the rest")));
  EXPECT_THAT(warnings({R"("nvidia.com/gpu":1)",
                        R"(,"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}])"}),
              Contains(HasSubstr("sets NVIDIA_VISIBLE_DEVICES")));
  EXPECT_THAT(
      warnings({.limits = R"("nvidia.com/gpu":1)",
                .metadata = R"(,"annotations":{"gantry.dev/computes":"30"})"}),
      Contains(HasSubstr(
          "does not know annotation gantry.dev/computes; did you mean gantry.dev/compute?")));
  EXPECT_THAT(warnings({R"("aliyun.com/gpu-count":2)"}), Contains(HasSubstr("asks for no GPU")));
}

TEST(Create, WarnsOfACountOfCardsThatKubernetesTakesForWholeOnes) {
  const auto admitted = create(pod_text({R"("aliyun.com/gpu-mem":8,"aliyun.com/gpu-count":2)"}));
  EXPECT_EQ(admitted.verdict.answer, Admission::Allowed);
  EXPECT_THAT(admitted.verdict.warnings, Contains(HasSubstr("annotation gantry.dev/gpus")));
}

TEST(PodEdits, WriteThePatchThatTheyApply) {
  const auto document =
      gantry::test::parsed(R"({"a":[0,1,2,3,4,5,6,7,8,9,10,11],"b/c":{"~d":1,"e":{}}})");
  PodEdits edits;
  for (const std::size_t at : {2U, 10U, 9U, 0U}) edits.remove({"a", at});
  edits.set({"b/c", "~d"}, "[true]");
  edits.set({"b/c", "e", "x"}, "null");
  const auto theirs =
      nlohmann::json::parse(document.text()).patch(nlohmann::json::parse(edits.text()));
  EXPECT_EQ(nlohmann::json::parse(*edits.applied(document)), theirs);
  EXPECT_EQ(theirs.dump(), R"({"a":[1,3,4,5,6,7,8,11],"b/c":{"e":{"x":null},"~d":[true]}})");
}

}  // namespace
}  // namespace gantry::admission
