// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/placement.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::podspec {
namespace {

using model::ContainerPhase;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

ContainerRequest asking(const std::string& name, ContainerPhase phase = ContainerPhase::Main,
                        std::uint32_t position = 0) {
  ContainerRequest ask;
  ask.container = name;
  ask.phase = phase;
  ask.position = position;
  ask.memory = {Amount::Kind::Units, 10};
  return ask;
}

PodRequest pod_asking(std::vector<ContainerRequest> containers,
                      Contract contract = Contract::Gpushare) {
  PodRequest ask;
  ask.contract = contract;
  for (const auto& one : containers)
    ++(one.phase == ContainerPhase::Main ? ask.main_containers : ask.init_containers);
  ask.containers = std::move(containers);
  return ask;
}

const Placement two_containers = {{"a", {{{"GPU-1"}, 0, 10240, 30}, {{"GPU-2"}, 3, 10240, 30}}},
                                  {"b", {{{"GPU-1"}, 0, 1024, 0}}}};

TEST(Placement, ReadsWhatItWrote) {
  const auto text = to_json(two_containers);
  EXPECT_EQ(
      text,
      R"({"containers":[{"name":"a","gpus":[{"uuid":"GPU-1","index":0,"mib":10240,"cores":30},)"
      R"({"uuid":"GPU-2","index":3,"mib":10240,"cores":30}]},)"
      R"({"name":"b","gpus":[{"uuid":"GPU-1","index":0,"mib":1024,"cores":0}]}]})");
  const auto read = parse_placement(text);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, two_containers);
}

std::string corruption(std::string_view text) {
  const auto read = parse_placement(text);
  EXPECT_FALSE(read.ok()) << text;
  if (read.ok()) return "";
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
  return read.error().text();
}

TEST(Placement, OfAStrangerIsRefused) {
  EXPECT_THAT(corruption("[]"), HasSubstr("expected an object, found an array"));
  EXPECT_THAT(corruption("{}"), HasSubstr("the list of containers is missing"));
  EXPECT_THAT(corruption(R"({"containers":[{"name":"a","gpus":[]}]})"), HasSubstr("has no GPUs"));
  EXPECT_THAT(
      corruption(
          R"({"containers":[{"name":"a","gpus":[{"uuid":"G","index":0,"mib":-1,"cores":0}]}]})"),
      HasSubstr("mib is not a number"));
  EXPECT_THAT(
      corruption(
          R"({"containers":[{"name":"a","gpus":[{"uuid":"G","index":0,"mib":9223372036854775807,"cores":0}]}]})"),
      HasSubstr("mib is not a number"));
  EXPECT_THAT(
      corruption(
          R"({"containers":[{"name":"a","gpus":[{"uuid":"G","index":0,"mib":1,"cores":101}]}]})"),
      HasSubstr("cores is not a number up to 100"));
  EXPECT_THAT(corruption(R"({"root":true,"containers":[]})"),
              HasSubstr("\"root\" is not a known key"));
  EXPECT_THAT(corruption(std::string(1000, '[')), HasSubstr("gantry.dev/placement"));
  EXPECT_THAT(corruption(std::string(300 << 10, ' ')), HasSubstr("more than 262144 bytes"));
}

TEST(Placement, WithOneContainerOrOneGpuTwiceIsRefused) {
  const std::string one = R"({"name":"a","gpus":[{"uuid":"G","index":0,"mib":1,"cores":0}]})";
  EXPECT_THAT(corruption(fmt::format(R"({{"containers":[{},{}]}})", one, one)),
              HasSubstr("is listed twice"));
  const std::string gpu = R"({"uuid":"G","index":0,"mib":1,"cores":0})";
  EXPECT_THAT(
      corruption(fmt::format(R"({{"containers":[{{"name":"a","gpus":[{},{}]}}]}})", gpu, gpu)),
      HasSubstr("has GPU G twice"));
}

TEST(Charges, AreTheSumOfWhatRunsTogether) {
  const auto sums = charges(pod_asking({asking("a"), asking("b")}), two_containers);
  EXPECT_THAT(sums, ElementsAre(Charge{{"GPU-1"}, 11264, 30, 2}, Charge{{"GPU-2"}, 10240, 30, 1}));
}

TEST(Charges, AreTheGreatestInitContainerWhereThatIsMore) {
  const auto ask = pod_asking(
      {asking("i", ContainerPhase::Init), asking("j", ContainerPhase::Init), asking("a")});
  const Placement placement = {
      {"i", {{{"G"}, 0, 100, 80}}}, {"j", {{{"G"}, 0, 300, 10}}}, {"a", {{{"G"}, 0, 200, 20}}}};
  EXPECT_THAT(charges(ask, placement), ElementsAre(Charge{{"G"}, 300, 80, 1}));
}

TEST(Charges, CountSidecarsBesideLaterInitContainersAndTheOthers) {
  const auto ask =
      pod_asking({asking("i", ContainerPhase::Init), asking("s", ContainerPhase::Sidecar),
                  asking("j", ContainerPhase::Init), asking("a")});
  const Placement placement = {{"i", {{{"G"}, 0, 400, 0}}},
                               {"s", {{{"G"}, 0, 50, 0}}},
                               {"j", {{{"G"}, 0, 300, 0}}},
                               {"a", {{{"G"}, 0, 200, 0}}}};
  EXPECT_THAT(charges(ask, placement), ElementsAre(Charge{{"G"}, 400, 0, 2}));
  const Placement later = {{"i", {{{"G"}, 0, 100, 0}}},
                           {"s", {{{"G"}, 0, 50, 0}}},
                           {"j", {{{"G"}, 0, 400, 0}}},
                           {"a", {{{"G"}, 0, 200, 0}}}};
  EXPECT_THAT(charges(ask, later), ElementsAre(Charge{{"G"}, 450, 0, 2}));
}

TEST(Charges, OfUnrequestedPartsCountToo) {
  const auto sums = charges(pod_asking({asking("a")}),
                            {{"x", {{{"G"}, 0, UINT64_MAX, 1}}}, {"a", {{{"G"}, 0, 7, 1}}}});
  EXPECT_THAT(sums, ElementsAre(Charge{{"G"}, UINT64_MAX, 2, 2}));
}

TEST(Annotations, OfGpushareAreWhatItsToolsRead) {
  AnnotationInput facts{
      .node = "n", .unit_mib = 1024, .card_mib = {{{"GPU-1"}, 143360}}, .unix_ns = 17};
  const auto ask = pod_asking({asking("a"), asking("b", ContainerPhase::Main, 1)});
  const auto notes =
      annotations(ask, {{"a", {{{"GPU-1"}, 2, 8192, 0}}}, {"b", {{{"GPU-1"}, 2, 1024, 0}}}}, facts);
  EXPECT_THAT(notes, Contains(Pair("ALIYUN_COM_GPU_MEM_IDX", "2")));
  EXPECT_THAT(notes, Contains(Pair("ALIYUN_COM_GPU_MEM_DEV", "140")));
  EXPECT_THAT(notes, Contains(Pair("ALIYUN_COM_GPU_MEM_POD", "9")));
  EXPECT_THAT(notes, Contains(Pair("ALIYUN_COM_GPU_MEM_ASSIGNED", "false")));
  EXPECT_THAT(notes, Contains(Pair("ALIYUN_COM_GPU_MEM_ASSUME_TIME", "17")));
  EXPECT_THAT(notes, Contains(Pair("scheduler.framework.gpushare.allocation",
                                   R"({"0":{"2":8},"1":{"2":1}})")));
  EXPECT_THAT(notes, Contains(Pair("gantry.dev/placement", testing::_)));
}

TEST(Annotations, OfHamiListEveryContainerOfThePod) {
  auto ask = pod_asking({asking("b", ContainerPhase::Main, 1)}, Contract::Hami);
  ask.init_containers = 1;
  ask.main_containers = 2;
  const auto notes =
      annotations(ask, {{"b", {{{"GPU-1"}, 0, 10240, 30}, {{"GPU-2"}, 1, 10240, 30}}}},
                  {.node = "n", .unix_ns = 5'000'000'000});
  EXPECT_THAT(notes, Contains(Pair("hami.io/vgpu-devices-allocated",
                                   ";;GPU-1,NVIDIA,10240,30:GPU-2,NVIDIA,10240,30:;")));
  EXPECT_THAT(notes, Contains(Pair("hami.io/vgpu-node", "n")));
  EXPECT_THAT(notes, Contains(Pair("hami.io/vgpu-time", "5")));
}

Result<std::optional<Placement>> placed(const std::string& annotations, const PodRequest& ask,
                                        const std::string& node = "n") {
  const auto document = json::Document::parse(fmt::format(
      R"({{"metadata":{{"annotations":{{{}}}}},"spec":{{"nodeName":"{}"}}}})", annotations, node));
  EXPECT_TRUE(document.ok()) << annotations;
  return read_placement(document->root(), ask, {{0, "GPU-0"}, {2, "GPU-2"}}, 1024);
}

std::string annotation_entry(std::string_view key, std::string_view value) {
  return fmt::format("{}:{}", json::quote(key), json::quote(value));
}

TEST(PlacementOf, APodWithoutANodeIsNone) {
  const auto text =
      annotation_entry(kPlacementAnnotation, to_json({{"a", {{{"GPU-0"}, 0, 1, 0}}}}));
  EXPECT_EQ(*placed(text, pod_asking({asking("a")}), ""), std::nullopt);
  EXPECT_EQ(*placed("", pod_asking({asking("a")})), std::nullopt);
}

TEST(PlacementOf, OursComesBeforeTheLegacyOnes) {
  const Placement ours = {{"a", {{{"GPU-0"}, 0, 7, 0}}}};
  const auto read = placed(annotation_entry(kPlacementAnnotation, to_json(ours)) + "," +
                               annotation_entry("ALIYUN_COM_GPU_MEM_IDX", "2"),
                           pod_asking({asking("a")}));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, ours);
}

TEST(PlacementOf, AHandWrittenOneForOtherContainersIsRefused) {
  const auto read =
      placed(annotation_entry(kPlacementAnnotation, to_json({{"x", {{{"GPU-0"}, 0, 7, 0}}}})),
             pod_asking({asking("a")}));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
  EXPECT_THAT(read.error().text(), HasSubstr("has 0 GPUs for container \"a\", which asks for 1"));
  const auto more = placed(
      annotation_entry(kPlacementAnnotation,
                       to_json({{"a", {{{"GPU-0"}, 0, 7, 0}}}, {"x", {{{"GPU-0"}, 0, 7, 0}}}})),
      pod_asking({asking("a")}));
  ASSERT_FALSE(more.ok());
  EXPECT_THAT(more.error().text(), HasSubstr("containers that do not ask for a GPU"));
}

TEST(PlacementOf, ReadsGpusharesIndex) {
  const auto read =
      placed(annotation_entry("ALIYUN_COM_GPU_MEM_IDX", "2"), pod_asking({asking("a")}));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, (Placement{{"a", {{{"GPU-2"}, 2, 10240, 0}}}}));
  EXPECT_FALSE(
      placed(annotation_entry("ALIYUN_COM_GPU_MEM_IDX", "1"), pod_asking({asking("a")})).ok());
  EXPECT_FALSE(
      placed(annotation_entry("ALIYUN_COM_GPU_MEM_IDX", "x"), pod_asking({asking("a")})).ok());
}

TEST(PlacementOf, OneGpuTwiceForOneContainerIsRefused) {
  auto two = asking("a");
  two.gpus = 2;
  const auto read = placed(annotation_entry("ALIYUN_COM_GPU_MEM_IDX", "0,0"), pod_asking({two}));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().text(), HasSubstr("one GPU twice for container \"a\""));
}

TEST(PlacementOf, ReadsGpusharesAllocation) {
  const auto read = placed(
      annotation_entry("scheduler.framework.gpushare.allocation", R"({"1":{"2":4},"0":{"0":8}})"),
      pod_asking({asking("a"), asking("b", ContainerPhase::Main, 1)}));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, (Placement{{"a", {{{"GPU-0"}, 0, 8192, 0}}}, {"b", {{{"GPU-2"}, 2, 4096, 0}}}}));
}

TEST(PlacementOf, ReadsHamisWithAndWithoutInitContainers) {
  auto ask = pod_asking({asking("b", ContainerPhase::Main, 1)}, Contract::Hami);
  ask.init_containers = 1;
  ask.main_containers = 2;
  const Placement there = {{"b", {{{"GPU-2"}, 2, 100, 30}}}};
  for (const auto* text : {";;GPU-2,NVIDIA,100,30:;", ";GPU-2[0-1],NVIDIA,100,30:;"}) {
    const auto read = placed(annotation_entry("hami.io/vgpu-devices-allocated", text), ask);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(*read, there);
  }
  for (const auto* text : {";", ";;;;", ";GPU-2,NVIDIA,x,30:;", ";GPU-2:;", ";[0-1],NVIDIA,1,30:;",
                           ";GPU-2,NVIDIA,99999999999999,30:;"})
    EXPECT_FALSE(placed(annotation_entry("hami.io/vgpu-devices-allocated", text), ask).ok())
        << text;
}

}  // namespace
}  // namespace gantry::podspec
