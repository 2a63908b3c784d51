// SPDX-License-Identifier: Apache-2.0
#include "keeper/questions.hpp"

#include "keeper/record.hpp"
#include "support/tree.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::keeper {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

share::Share a_share() {
  return *share::share_from(
      {.name = "train", .gpus = "GPU-1", .memory = "10GiB", .compute = "30%"});
}

ShareState a_state() {
  return {.share = a_share(),
          .directory = "/run/gantry/shares/train/fence",
          .held = true,
          .refused = 3,
          .gpus = {{.uuid = {"GPU-1"},
                    .memory_total = 7,
                    .memory_limit = UINT64_MAX,
                    .memory_held = 5,
                    .memory_used = 6,
                    .part = 0.3,
                    .used = 0.25,
                    .measured = -1,
                    .gate = "open",
                    .busy = true}},
          .processes = {{.pid = 9,
                         .inner_pid = 1,
                         .command = "a \"b\"",
                         .gpus = {{.memory_held = 5, .launches = 8, .contexts = 1}}}},
          .findings = {{.at_unix_ms = 5, .kind = "memory", .pid = 9, .text = "too much"}}};
}

TEST(Questions, ComeOutAsTheyWentIn) {
  const Question set{.ask = Ask::Set,
                     .name = "train",
                     .changes = {.memory = "20GiB", .compute = "50%"},
                     .overcommit = share::Overcommit::Allowed};
  const auto read = question_from(to_line(set));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->ask, Ask::Set);
  EXPECT_EQ(read->name, "train");
  EXPECT_EQ(read->changes, set.changes);
  EXPECT_EQ(read->overcommit, share::Overcommit::Allowed);
  const auto hold = question_from(to_line({.ask = Ask::Hold, .share = a_share()}));
  ASSERT_TRUE(hold.ok()) << hold.error().text();
  EXPECT_EQ(hold->share, a_share());
}

TEST(Questions, ThatMakeNoSenseAreErrors) {
  for (const auto* line :
       {"", "x", "[]", "{}", R"({"ask":"dance"})", R"({"ask":"remove"})", R"({"ask":"create"})",
        R"({"ask":"create","share":{"name":"../x"}})", R"({"ask":"adopt","name":"a","pid":-1})",
        R"({"ask":"set","name":"a","changes":{"colour":"red"}})"}) {
    EXPECT_FALSE(question_from(line).ok()) << line;
  }
}

TEST(Answers, CarryWholeStates) {
  const auto read = answer_from(answer_with(std::vector{a_state()}));
  ASSERT_TRUE(read.ok()) << read.error().text();
  ASSERT_THAT(*read, SizeIs(1));
  EXPECT_EQ(read->front(), a_state());
}

TEST(Answers, CarryErrorsWithTheirReason) {
  const auto read = answer_from(answer_with(Error(Errc::Exists, "it is \"there\" already")));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Exists);
  EXPECT_EQ(read.error().text(), "it is \"there\" already");
}

TEST(Records, AreFoundAgain) {
  const test::Tree tree;
  const auto host = tree.host();
  const Record record{.share = a_share(),
                      .cards = {{.uuid = {"GPU-1"}, .memory_bytes = 140}},
                      .holder = known_process(::getpid()),
                      .adopted = {known_process(1)}};
  ASSERT_TRUE(write_record(host, record).ok());
  EXPECT_TRUE(host.exists("/run/gantry/shares/train/fence/cuda"));
  const auto found = read_records(host);
  ASSERT_THAT(found.records, SizeIs(1));
  EXPECT_EQ(found.records[0].share, record.share);
  EXPECT_TRUE(is_there(found.records[0].holder));
  EXPECT_EQ(found.records[0].adopted, record.adopted);
  remove_record(host, "train");
  EXPECT_THAT(read_records(host).records, IsEmpty());
  EXPECT_FALSE(host.exists("/run/gantry/shares/train"));
}

TEST(Records, WithNonsenseAreToldAndLeftAlone) {
  test::Tree tree;
  tree.file("run/gantry/shares/bad/share.json", "{\"share\":");
  tree.directory("run/gantry/shares/half/fence");
  const auto found = read_records(tree.host());
  EXPECT_THAT(found.records, IsEmpty());
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].text(), HasSubstr("bad/share.json"));
  EXPECT_TRUE(tree.host().exists("/run/gantry/shares/bad/share.json"));
  EXPECT_FALSE(tree.host().exists("/run/gantry/shares/half"));
}

TEST(Records, DoNotTakeAnotherProcessForTheOneThatWas) {
  auto process = known_process(::getpid());
  EXPECT_TRUE(is_there(process));
  process.started += 1;
  EXPECT_FALSE(is_there(process));
}

}  // namespace
}  // namespace gantry::keeper
