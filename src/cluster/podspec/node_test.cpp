// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/node.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::podspec {
namespace {

using testing::HasSubstr;

Result<NodeInfo> read_node(const std::string& annotations, const std::string& status = "") {
  const auto document = json::Document::parse(
      fmt::format(R"({{"metadata":{{"name":"n","annotations":{{{}}}}},"status":{{{}}}}})",
                  annotations, status));
  EXPECT_TRUE(document.ok()) << annotations << status;
  return parse_node(document->root());
}

std::string note(std::string_view key, std::string_view value) {
  return fmt::format("{}:{}", json::quote(key), json::quote(value));
}

NodeInfo two_cards() {
  NodeInfo facts;
  facts.name = "n";
  facts.unit_mib = 1;
  facts.cards = {{.uuid = {"GPU-a"},
                  .index = 0,
                  .mib = 143360,
                  .model = "NVIDIA \"H200\"",
                  .numa = 0,
                  .links = {0, 18}},
                 {.uuid = {"GPU-b"},
                  .index = 1,
                  .mib = 24576,
                  .slots = 4,
                  .healthy = false,
                  .links = {18, 0}}};
  return facts;
}

// Agents and schedulers of different versions read this annotation.
TEST(Node, IsWrittenByteForByteAsInTheLastVersion) {
  auto facts = two_cards();
  facts.cards[1].links.clear();
  EXPECT_EQ(to_json(facts),
            R"({"unit":1,"whole":0,"gpus":[{"uuid":"GPU-a","index":0,"mib":143360,"slots":32,)"
            R"("model":"NVIDIA \"H200\"","numa":0,"healthy":true,"links":[0,18]},)"
            R"({"uuid":"GPU-b","index":1,"mib":24576,"slots":4,"model":"","numa":-1,)"
            R"("healthy":false}]})");
}

TEST(Node, ReadsWhatItWrote) {
  const auto facts = read_node(note(kSharedGpusAnnotation, to_json(two_cards())));
  ASSERT_TRUE(facts.ok()) << facts.error().text();
  EXPECT_EQ(*facts, two_cards());
}

TEST(Node, HasAnAddressAndIsReadyOrNot) {
  const auto facts = read_node(
      "",
      R"("addresses":[{"type":"Hostname","address":"h"},{"type":"InternalIP","address":"10.0.0.1"}],
      "conditions":[{"type":"Ready","status":"Unknown"}])");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->address, "10.0.0.1");
  EXPECT_FALSE(facts->ready);
  EXPECT_TRUE(facts->cards.empty());
}

TEST(Node, CountsWholeGpusWhereTheyAreCards) {
  const std::string status = R"("allocatable":{"nvidia.com/gpu":"8"})";
  EXPECT_EQ(read_node("", status)->whole_gpus, 8U);
  EXPECT_EQ(read_node(note(kSharedGpusAnnotation, to_json(two_cards())), status)->whole_gpus, 0U)
      << "they are slots";
  auto mixed = two_cards();
  mixed.whole_gpus = 6;
  EXPECT_EQ(read_node(note(kSharedGpusAnnotation, to_json(mixed)), status)->whole_gpus, 6U);
}

TEST(Node, TakesCordonedCardsOut) {
  const auto facts = read_node(note(kSharedGpusAnnotation, to_json(two_cards())) + "," +
                               note(kCordonAnnotation, "GPU-x, GPU-a"));
  ASSERT_TRUE(facts.ok());
  EXPECT_FALSE(facts->cards[0].healthy);
}

TEST(Node, OfGpushareHasEqualCards) {
  const auto facts = read_node(
      "",
      R"("capacity":{"aliyun.com/gpu-mem":"280","aliyun.com/gpu-count":"2"},"allocatable":{"aliyun.com/gpu-mem":"280"})");
  ASSERT_TRUE(facts.ok());
  ASSERT_EQ(facts->cards.size(), 2U);
  EXPECT_EQ(facts->cards[1].uuid.text, "n/1");
  EXPECT_EQ(facts->cards[1].mib, 143360U);
  EXPECT_EQ(facts->unit_mib, 1024U);
  const auto mib =
      read_node("", R"("capacity":{"aliyun.com/gpu-mem":"48k","aliyun.com/gpu-count":2})");
  EXPECT_EQ(mib->unit_mib, 1U);
  EXPECT_EQ(mib->cards[0].mib, 24000U);
  EXPECT_FALSE(mib->cards[0].healthy) << "nothing of it is allocatable";
}

TEST(Node, SortsCardsAndTheirLinksByIndex) {
  const auto facts = read_node(note(
      kSharedGpusAnnotation,
      R"({"gpus":[{"uuid":"c","index":2,"links":[0,1,2]},{"uuid":"a","index":0,"links":[3,4,5]},{"uuid":"b","index":1,"links":[6,7,8]}]})"));
  ASSERT_TRUE(facts.ok()) << facts.error().text();
  EXPECT_EQ(facts->cards[0].uuid.text, "a");
  EXPECT_EQ(facts->cards[0].links, (std::vector<std::int32_t>{4, 5, 3}));
  EXPECT_EQ(facts->cards[2].links, (std::vector<std::int32_t>{1, 2, 0}));
}

TEST(Node, WithAnAnnotationThatIsNoneIsCorrupt) {
  for (const auto* text :
       {"", "[]", "{}", R"({"gpus":[{}]})", R"({"unit":7,"gpus":[]})",
        R"({"gpus":[{"uuid":"a","mib":1e30}]})",
        R"({"gpus":[{"uuid":"a"},{"uuid":"a","index":1}]})",
        R"({"gpus":[{"uuid":"a"},{"uuid":"b"}]})", R"({"gpus":[{"uuid":"a","links":[1,2]}]})"}) {
    const auto facts = read_node(note(kSharedGpusAnnotation, text));
    ASSERT_FALSE(facts.ok()) << text;
    EXPECT_EQ(facts.error().code(), Errc::Corrupt) << text;
    EXPECT_THAT(facts.error().text(), HasSubstr("node n"));
  }
  EXPECT_EQ(
      read_node("", R"("capacity":{"aliyun.com/gpu-mem":"1e18","aliyun.com/gpu-count":"1e9"})")
          .error()
          .code(),
      Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::podspec
