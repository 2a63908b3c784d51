// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::podspec {
namespace {

using model::ContainerPhase;
using testing::HasSubstr;
using RequestResult = Result<std::optional<PodRequest>>;

RequestResult read_request(const std::string& text) {
  const auto document = json::Document::parse(text);
  EXPECT_TRUE(document.ok()) << text;
  return parse_request(document->root());
}

// One container "a" with these limits, and these members of metadata.
RequestResult one(const std::string& limits, const std::string& annotations = "") {
  return read_request(
      fmt::format(R"({{"metadata":{{"uid":"u","namespace":"n","name":"p","annotations":{{{}}}}},)"
                  R"("spec":{{"containers":[{{"name":"a","resources":{{"limits":{{{}}}}}}}]}}}})",
                  annotations, limits));
}

std::string refusal(const RequestResult& asked) {
  EXPECT_FALSE(asked.ok());
  if (asked.ok()) return "";
  EXPECT_EQ(asked.error().code(), Errc::Invalid);
  return asked.error().text();
}

ContainerRequest first(const RequestResult& asked) {
  EXPECT_TRUE(asked.ok()) << asked.error().text();
  if (!asked.ok() || !*asked || (*asked)->containers.empty()) {
    ADD_FAILURE() << "asks for nothing";
    return {};
  }
  return (*asked)->containers.front();
}

TEST(Ask, IsNoneOfAPodWithoutGpus) {
  const auto asked = one(R"("cpu":"500m","memory":"1Gi")");
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(*asked, std::nullopt);
}

TEST(Ask, OfZeroIsNone) {
  const auto asked = one(R"("aliyun.com/gpu-mem":"0","nvidia.com/gpu":0)");
  ASSERT_TRUE(asked.ok()) << asked.error().text();
  EXPECT_EQ(*asked, std::nullopt);
}

TEST(Ask, OfGpushareIsUnitsOfTheNode) {
  const auto asked = one(R"("aliyun.com/gpu-mem":"8")");
  const auto container = first(asked);
  EXPECT_EQ(container.memory, (Amount{Amount::Kind::Units, 8}));
  EXPECT_EQ(container.gpus, 1U);
  EXPECT_EQ(container.cores, 0U);
  EXPECT_EQ(container.resource, kAliyunGpuMem);
  EXPECT_EQ((*asked)->contract, Contract::Gpushare);
  EXPECT_EQ((*asked)->pod.uid, "u");
  EXPECT_TRUE((*asked)->shared());
}

TEST(Ask, ReadsQuantitiesAsTheApiServerWritesThem) {
  EXPECT_EQ(first(one(R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"10k")")).memory.value, 10000U);
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":"1e3")")).memory.value, 1000U);
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":10)")).memory.value, 10U);
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":"2000m")")).memory.value, 2U);
}

TEST(Ask, OfBytesSaysWhatToWriteInstead) {
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":"10Gi")")),
              HasSubstr("write aliyun.com/gpu-mem: 10 where they are GiB, 10240 where"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"10Gi")")),
              HasSubstr("it counts MiB: write nvidia.com/gpumem: 10240"));
}

TEST(Ask, OfHalfAGpuSaysHowToWriteIt) {
  for (const auto* half : {R"("0.5")", R"("500m")", "0.5"}) {
    EXPECT_THAT(refusal(one(fmt::format(R"("nvidia.com/gpu":{})", half))),
                HasSubstr("nvidia.com/gpu: 1 with nvidia.com/gpumem-percentage: 50"));
  }
}

TEST(Ask, BeyondAllMemoryIsRefused) {
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":"9223372036854775807")")), HasSubstr("too much"));
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":"9223372036854775808")")), HasSubstr("2^63"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":"1e18")")), HasSubstr("too much"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":1,"nvidia.com/gpucores":101)")),
              HasSubstr("at most 100"));
}

TEST(Ask, OfANumberThatIsNoneIsRefused) {
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":"one")")), HasSubstr("\"one\" is not a quantity"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":"-1")")), HasSubstr("below zero"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":null)")), HasSubstr("null is not a quantity"));
}

TEST(Ask, OfNvidiaGpuAloneIsTheWholeCard) {
  const auto asked = one(R"("nvidia.com/gpu":2)");
  EXPECT_EQ(first(asked).gpus, 2U);
  EXPECT_EQ(first(asked).cores, 100U);
  EXPECT_EQ(first(asked).memory, Amount{});
  EXPECT_FALSE((*asked)->shared());
}

TEST(Ask, OfHamisMemoryAloneIsOneGpuWithoutALimitOfTime) {
  const auto asked = one(R"("nvidia.com/gpumem":3000)");
  EXPECT_EQ(first(asked).gpus, 1U);
  EXPECT_EQ(first(asked).cores, 0U);
  EXPECT_EQ(first(asked).memory, (Amount{Amount::Kind::MiB, 3000}));
  EXPECT_TRUE((*asked)->shared());
}

TEST(Ask, OfHamisPerCentAndCores) {
  const auto asked =
      one(R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":50,"nvidia.com/gpucores":30)");
  EXPECT_EQ(first(asked).memory, (Amount{Amount::Kind::Percent, 50}));
  EXPECT_EQ(first(asked).cores, 30U);
}

TEST(Ask, OfAllMemoryWithSomeTimeIsShared) {
  const auto asked = one(R"("nvidia.com/gpu":1,"nvidia.com/gpucores":30)");
  EXPECT_EQ(first(asked).cores, 30U);
  EXPECT_TRUE((*asked)->shared());
}

TEST(Ask, InRequestsAloneCountsAsTheLimit) {
  const auto asked = read_request(
      R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_EQ(first(asked).gpus, 1U);
}

TEST(Ask, WithALimitAndAnotherRequestIsRefused) {
  const auto asked = read_request(
      R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"2"},)"
      R"("requests":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_THAT(refusal(asked), HasSubstr("a limit of 2 and a request of 1; write the limit alone"));
}

TEST(Ask, OfBothContractsIsRefused) {
  EXPECT_THAT(
      refusal(one(R"("nvidia.com/gpu":1,"aliyun.com/gpu-mem":4)")),
      HasSubstr("write nvidia.com/gpu with nvidia.com/gpumem, or aliyun.com/gpu-mem alone"));
}

TEST(Ask, KnowsInitContainersAndSidecars) {
  const auto asked = read_request(R"({"spec":{"initContainers":[
      {"name":"plain"},
      {"name":"warm","resources":{"limits":{"aliyun.com/gpu-mem":1}}},
      {"name":"log","restartPolicy":"Always","resources":{"limits":{"aliyun.com/gpu-mem":2}}}],
      "containers":[{"name":"main","resources":{"limits":{"aliyun.com/gpu-mem":3}}}]}})");
  ASSERT_TRUE(asked.ok() && *asked);
  const auto& containers = (*asked)->containers;
  ASSERT_EQ(containers.size(), 3U);
  EXPECT_EQ(containers[0].phase, ContainerPhase::Init);
  EXPECT_EQ(containers[0].position, 1U);
  EXPECT_EQ(containers[1].phase, ContainerPhase::Sidecar);
  EXPECT_EQ(containers[2].phase, ContainerPhase::Main);
  EXPECT_EQ(containers[2].position, 0U);
  EXPECT_EQ((*asked)->init_containers, 3U);
}

TEST(Ask, OfTwoContainersWithOneNameIsRefused) {
  EXPECT_THAT(refusal(read_request(R"({"spec":{"containers":[{"name":"a"},{"name":"a"}]}})")),
              HasSubstr("two containers are named \"a\""));
}

TEST(Ask, OfAContainerWithoutANameIsRefused) {
  EXPECT_THAT(refusal(read_request(
                  R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}]}})")),
              HasSubstr("has no name"));
}

TEST(Ask, DividesGpushareMemoryAmongSeveralGpus) {
  const auto container = first(one(R"("aliyun.com/gpu-mem":8)", R"("gantry.dev/gpus":"2")"));
  EXPECT_EQ(container.gpus, 2U);
  EXPECT_EQ(container.memory.value, 4U);
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":7)", R"("gantry.dev/gpus":"2")")),
              HasSubstr("cannot be divided evenly among 2 GPUs; write 8"));
}

TEST(Ask, TakesGpusharesOwnCountAsLabelAnnotationOrLimit) {
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":8,"aliyun.com/gpu-count":2)")).gpus, 2U);
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":8)", R"("aliyun.com/gpu-count":"4")")).gpus, 4U);
  EXPECT_EQ(first(read_request(
                      R"({"metadata":{"labels":{"aliyun.com/gpu-count":"2"}},"spec":{"containers":[
      {"name":"a","resources":{"limits":{"aliyun.com/gpu-mem":8}}}]}})"))
                .gpus,
            2U);
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":8)",
                          R"("aliyun.com/gpu-count":"4","gantry.dev/gpus":"2")")),
              HasSubstr("contradict"));
}

TEST(Ask, TakesComputeForOneContainerOrAll) {
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":8)", R"("gantry.dev/compute":"30")")).cores, 30U);
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":8)",
                      R"("gantry.dev/compute":"30","gantry.dev/compute.a":"40")"))
                .cores,
            40U);
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":8)", R"("gantry.dev/compute.b":"40")")),
              HasSubstr("names no container that asks for a GPU; write gantry.dev/compute.a"));
  EXPECT_THAT(refusal(one(R"("aliyun.com/gpu-mem":8)", R"("gantry.dev/compute":"130")")),
              HasSubstr("from 1 to 100"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":1,"nvidia.com/gpucores":20)",
                          R"("gantry.dev/compute":"30")")),
              HasSubstr("contradict"));
}

TEST(Ask, TakesTheSlotsIdsWhereThereIsOne) {
  EXPECT_EQ(first(one(R"("aliyun.com/gpu-mem":8192,"gantry.dev/share":1)")).resource, kShareSlot);
  EXPECT_THAT(refusal(one(R"("gantry.dev/share":1)")), HasSubstr("write aliyun.com/gpu-mem"));
}

TEST(Ask, ReadsWishes) {
  const auto asked =
      one(R"("nvidia.com/gpu":1,"nvidia.com/gpumem":1)",
          R"("nvidia.com/use-gputype":"H200, A100","nvidia.com/nouse-gpuuuid":"GPU-1",
         "nvidia.com/numa-bind":"true","hami.io/node-scheduler-policy":"spread",
         "hami.io/gpu-scheduler-policy":"binpack,numa","gantry.dev/priority":"high")");
  ASSERT_TRUE(asked.ok()) << asked.error().text();
  const auto& affinity = (*asked)->affinity;
  EXPECT_EQ(affinity.types, (std::vector<std::string>{"H200", "A100"}));
  EXPECT_EQ(affinity.excluded_uuids, (std::vector<model::GpuUuid>{{"GPU-1"}}));
  EXPECT_EQ(affinity.topology, TopologyPolicy::Numa);
  EXPECT_EQ(affinity.nodes, PlacementPolicy::Spread);
  EXPECT_EQ(affinity.gpus, PlacementPolicy::Pack);
  EXPECT_EQ((*asked)->share_priority, "high");
}

TEST(Ask, WithWishesThatContradictIsRefused) {
  const std::string limits = R"("nvidia.com/gpu":1)";
  EXPECT_THAT(
      refusal(one(limits, R"("hami.io/node-scheduler-policy":"spread","gantry.dev/nodes":"pack")")),
      HasSubstr("contradict each other; keep one"));
  EXPECT_THAT(refusal(one(limits, R"("nvidia.com/numa-bind":"true","gantry.dev/near":"links")")),
              HasSubstr("keep one"));
  EXPECT_THAT(
      refusal(
          one(limits, R"("nvidia.com/use-gpuuuid":"GPU-1","nvidia.com/nouse-gpuuuid":"gpu-1")")),
      HasSubstr("excludes everything that"));
  EXPECT_THAT(refusal(one(limits, R"("gantry.dev/nodes":"binpack")")),
              HasSubstr("write pack or spread"));
  EXPECT_THAT(refusal(one(limits, R"("gantry.dev/near":3)")), HasSubstr("write it in quotes"));
}

TEST(Ask, TakesHamisPriority) {
  const auto asked = one(R"("nvidia.com/gpu":1,"nvidia.com/priority":1)");
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ((*asked)->share_priority, "low");
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":1,"nvidia.com/priority":1)",
                          R"("gantry.dev/priority":"high")")),
              HasSubstr("a pod has one priority"));
  EXPECT_THAT(refusal(one(R"("nvidia.com/gpu":1,"nvidia.com/priority":2)")),
              HasSubstr("0 (high) or 1 (low)"));
}

TEST(Pod, IsFinishedByItsPhaseAlone) {
  const auto finished = [](std::string_view status) {
    const auto pod = json::Document::parse(R"({"metadata":{"deletionTimestamp":"t"},"status":)" +
                                           std::string(status) + "}");
    return is_finished(pod->root());
  };
  EXPECT_TRUE(finished(R"({"phase":"Succeeded"})"));
  EXPECT_TRUE(finished(R"({"phase":"Failed"})"));
  EXPECT_FALSE(finished(R"({"phase":"Running"})"));
  EXPECT_FALSE(finished(R"({})"));
}

TEST(Amount, NearTheEndOfNumbersDoesNotWrap) {
  const Amount units{Amount::Kind::Units, UINT64_MAX / 2};
  EXPECT_EQ(units.on(0, 1024), UINT64_MAX);
  EXPECT_EQ(Amount{}.on(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ((Amount{Amount::Kind::Percent, 50}.on(143771, 1)), 71885U);
}

}  // namespace
}  // namespace gantry::podspec
