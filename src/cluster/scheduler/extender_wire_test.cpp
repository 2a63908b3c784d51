// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/extender_wire.hpp"

#include "base/json/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReadArgs, TakesNodeNamesWithoutTheirObjects) {
  const auto args = read_args(R"({"Pod":{"a":1},"Nodes":null,"NodeNames":["n1", "n2"]})");
  ASSERT_TRUE(args.ok());
  EXPECT_EQ(args->pod, R"({"a":1})");
  EXPECT_THAT(args->names, ElementsAre("n1", "n2"));
  EXPECT_TRUE(args->has_names);
  EXPECT_FALSE(args->has_nodes);
}

TEST(ReadArgs, TakesKeysInAnyCase) {
  const auto args = read_args(R"({"pod":{},"nodenames":["n1"],"nodes":null})");
  ASSERT_TRUE(args.ok());
  EXPECT_THAT(args->names, ElementsAre("n1"));
}

TEST(ReadArgs, FindsTheNamesOfNodeObjects) {
  const auto args = read_args(
      R"({"Pod":{},"NodeNames":null,"Nodes":{"metadata":{},"items":[)"
      R"({"spec":{"x":["]"]},"metadata":{"labels":{"name":"no"},"name":"n1"}},{"metadata":{"name":"n2"}}]}})");
  ASSERT_TRUE(args.ok());
  EXPECT_THAT(args->names, ElementsAre("n1", "n2"));
  EXPECT_EQ(args->items[1], R"({"metadata":{"name":"n2"}})");
}

TEST(ReadArgs, UnderstandsEscapesInNames) {
  const auto args = read_args(R"({"NodeNames":["\u006e1","a\"b"]})");
  ASSERT_TRUE(args.ok());
  EXPECT_THAT(args->names, ElementsAre("n1", "a\"b"));
}

TEST(ReadArgs, BothListsNullIsNoNode) {
  const auto args = read_args(R"({"Pod":{},"Nodes":null,"NodeNames":null})");
  ASSERT_TRUE(args.ok());
  EXPECT_THAT(args->names, IsEmpty());
  EXPECT_FALSE(args->has_names || args->has_nodes);
}

TEST(ReadArgs, WhatIsNoRequestIsSaidToBeNone) {
  for (const std::string_view body :
       {"", "[]", "{", "null", R"({"NodeNames":[1]})", R"({"NodeNames":["a)",
        R"({"NodeNames":["a"]}{)", R"({"Nodes":[]})", R"({"NodeNames":["\ud800)",
        "{\"a\":\"\n\"}"}) {
    const auto args = read_args(body);
    ASSERT_FALSE(args.ok()) << body;
    EXPECT_THAT(args.error().text(), HasSubstr("not a filter or prioritize request"));
  }
}

TEST(ReadArgs, DeepNestingIsRefusedNotFollowed) {
  EXPECT_FALSE(read_args(R"({"Pod":)" + std::string(100'000, '[')).ok());
}

TEST(WriteFilter, SaysWhichNodesAreLeftAndWhyOthersAreNot) {
  const auto args = read_args(R"({"NodeNames":["a","b","c"]})");
  const std::string full = "\"full\"";
  const std::string none = "\"none here\"";
  EXPECT_EQ(write_filter(*args, {{{nullptr, false}, {&full, true}, {&none, false}}}),
            R"({"Nodes":null,"NodeNames":["a"],"FailedNodes":{"b":"full"},)"
            R"("FailedAndUnresolvableNodes":{"c":"none here"},"Error":""})");
}

TEST(WriteFilter, GivesNodeObjectsBackAsTheyCame) {
  const auto args = read_args(
      R"({"Nodes":{"items":[{"metadata":{"name":"a"},"x": 1},{"metadata":{"name":"b"}}]}})");
  const std::string full = "\"full\"";
  const auto text = write_filter(*args, {{{nullptr, false}, {&full, true}}});
  EXPECT_THAT(text,
              HasSubstr(R"("Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"},"x": 1}]})"));
  EXPECT_THAT(text, HasSubstr(R"("NodeNames":["a"])"));
}

TEST(WriteFilter, IsJsonAlsoWhereNamesNeedEscapes) {
  const auto args = read_args(R"({"NodeNames":["a\"b","c\\d"]})");
  const std::string full = "\"full\"";
  const auto text = json::Document::parse(write_filter(*args, {{{nullptr, false}, {&full, true}}}));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ((*text)["NodeNames"].element(0).string(), "a\"b");
  EXPECT_EQ((*text)["FailedNodes"]["c\\d"].string(), "full");
}

TEST(ReadBindArgs, TakesAllFour) {
  const auto args =
      read_bind_args(R"({"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"})");
  ASSERT_TRUE(args.ok());
  EXPECT_EQ(args->pod.name, "p");
  EXPECT_EQ(args->pod.name_space, "ns");
  EXPECT_EQ(args->pod.uid, "u");
  EXPECT_EQ(args->node, "n");
  EXPECT_FALSE(read_bind_args(R"({"PodName":"p"})").ok());
}

TEST(ReadPreemptArgs, TakesBothForms) {
  const auto meta = read_preempt_args(
      R"({"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"}],"NumPDBViolations":2}}})");
  ASSERT_TRUE(meta.ok());
  EXPECT_THAT(meta->nodes.at("n1").uids, ElementsAre("a"));
  EXPECT_EQ(meta->nodes.at("n1").pdb_violations, 2);
  const auto whole = read_preempt_args(
      R"({"Pod":{},"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"name":"x","uid":"b"},"spec":{}}],"NumPDBViolations":0}}})");
  ASSERT_TRUE(whole.ok());
  EXPECT_THAT(whole->nodes.at("n1").uids, ElementsAre("b"));
}

TEST(WritePreempt, IsWhatTheSchedulerReads) {
  EXPECT_EQ(
      write_preempt({{"n1", {{"a", "b"}, 1}}, {"n2", {}}}),
      R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1},)"
      R"("n2":{"Pods":[],"NumPDBViolations":0}}})");
  EXPECT_EQ(write_preempt({}), R"({"NodeNameToMetaVictims":{}})");
}

}  // namespace
}  // namespace gantry::scheduler
