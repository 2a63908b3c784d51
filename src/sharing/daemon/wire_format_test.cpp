// SPDX-License-Identifier: Apache-2.0
// The lines of the control socket and the records on disk, byte for byte. A daemon and its clients
// are upgraded one after the other, and a new daemon restores the shares of the old one: both
// versions must write these lines and read them.
#include "base/core/bytes.hpp"
#include "sharing/daemon/protocol.hpp"
#include "sharing/daemon/share_record.hpp"
#include "sharing/daemon/share_state_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kCapped =
    R"({"name":"train","gpus":"GPU-1,MIG-2","memory":"10GiB","compute":"30%","excess":"cap",)"
    R"("priority":"normal","on-violation":"report","unattached":"refuse",)"
    R"("context-memory":"counted","backend":"auto"})";
constexpr std::string_view kWeighted =
    R"({"name":"b","gpus":"any","memory":"50%","compute":"none","weight":"200",)"
    R"("excess":"work-conserving","priority":"high","on-violation":"stop","unattached":"pass",)"
    R"("context-memory":"free","backend":"fence"})";
constexpr std::string_view kUnlimited =
    R"({"name":"c","gpus":"any","memory":"none","compute":"none","excess":"work-conserving",)"
    R"("priority":"low","on-violation":"report","unattached":"refuse","context-memory":"counted",)"
    R"("backend":"time-slicing"})";

policy::Share capped() {
  return *policy::parse_share(
      {.name = "train", .gpus = "GPU-1,MIG-2", .memory = "10GiB", .compute = "30%"});
}

policy::Share weighted() {
  return *policy::parse_share({.name = "b",
                               .memory = "50%",
                               .weight = "200",
                               .priority = "high",
                               .on_violation = "stop",
                               .unattached = "pass",
                               .context_memory = "free",
                               .backend = "fence"});
}

policy::Share unlimited() {
  return *policy::parse_share({.name = "c", .priority = "low", .backend = "time-slicing"});
}

std::string line(std::string_view before, std::string_view share, std::string_view after) {
  return std::string(before) + std::string(share) + std::string(after);
}

void expect_request(const Request& request, const std::string& text) {
  EXPECT_EQ(to_line(request), text);
  const auto read = parse_request(text);
  ASSERT_TRUE(read.ok()) << text << ": " << read.error().text();
  EXPECT_EQ(read->ask, request.ask);
  EXPECT_EQ(read->name, request.name);
  EXPECT_EQ(read->share, request.share);
  EXPECT_EQ(read->changes, request.changes);
  EXPECT_EQ(read->overcommit, request.overcommit);
  EXPECT_EQ(read->pid, request.pid);
  EXPECT_EQ(read->contained, request.contained);
}

TEST(WireFormat, OfNewShares) {
  expect_request({.ask = RequestKind::Create, .share = capped()},
                 line(R"({"ask":"create","share":)", kCapped, "}"));
  expect_request({.ask = RequestKind::Create, .share = unlimited()},
                 line(R"({"ask":"create","share":)", kUnlimited, "}"));
  expect_request(
      {.ask = RequestKind::Hold, .share = weighted(), .overcommit = policy::Overcommit::Allowed},
      line(R"({"ask":"hold","share":)", kWeighted, R"(,"overcommit":true})"));
}

TEST(WireFormat, OfChanges) {
  expect_request(
      {.ask = RequestKind::Set,
       .name = "train",
       .changes = {.memory = policy::MemoryLimit{.bytes = 20 * kGiB},
                   .percent = 50,
                   .excess = policy::Excess::Allowed,
                   .priority = policy::Priority::Low,
                   .violation = policy::ViolationPolicy::Stop,
                   .unattached = policy::UnattachedPolicy::Pass,
                   .context_memory = policy::ContextMemory::Free},
       .overcommit = policy::Overcommit::Allowed},
      R"({"ask":"set","name":"train","changes":{"memory":"20GiB","compute":"50%",)"
      R"("excess":"work-conserving","priority":"low","on_violation":"stop","unattached":"pass",)"
      R"("context_memory":"free"},"overcommit":true})");
  expect_request({.ask = RequestKind::Set, .name = "a", .changes = {.weight = 200}},
                 R"({"ask":"set","name":"a","changes":{"weight":"200"}})");
  expect_request({.ask = RequestKind::Set,
                  .name = "a",
                  .changes = {.gpus = std::vector<model::GpuUuid>{{"GPU-1"}, {"GPU-2"}},
                              .memory = policy::MemoryLimit{},
                              .percent = 0,
                              .backend = policy::Backend::Mps}},
                 R"({"ask":"set","name":"a","changes":{"gpus":"GPU-1,GPU-2","memory":"none",)"
                 R"("compute":"none","backend":"mps"}})");
  expect_request({.ask = RequestKind::Set, .name = "a"},
                 R"({"ask":"set","name":"a","changes":{}})");
}

// Clients of the last version send what the user typed.
TEST(WireFormat, OfChangesInOtherWords) {
  const auto read = parse_request(
      R"({"ask":"set","name":"a","changes":{"memory":"4096MiB","compute":"30","priority":""}})");
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->changes, (policy::ShareChanges{.memory = policy::MemoryLimit{.bytes = 4 * kGiB},
                                                 .percent = 30}));
  const auto wrong = parse_request(R"({"ask":"set","name":"a","changes":{"compute":"130%"}})");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), Errc::Invalid);
  EXPECT_THAT(wrong.error().text(), HasSubstr("compute `130%`"));
}

TEST(WireFormat, OfTheOtherRequests) {
  expect_request({.ask = RequestKind::List}, R"({"ask":"list"})");
  expect_request({.ask = RequestKind::Release}, R"({"ask":"release"})");
  expect_request({.ask = RequestKind::Show, .name = "a"}, R"({"ask":"show","name":"a"})");
  expect_request({.ask = RequestKind::Remove, .name = "a"}, R"({"ask":"remove","name":"a"})");
  expect_request({.ask = RequestKind::Adopt, .name = "a", .pid = 7, .contained = true},
                 R"({"ask":"adopt","name":"a","pid":7,"contained":true})");
}

TEST(WireFormat, OfStates) {
  const std::vector<ShareState> states{example_state(capped()),
                                       {.share = weighted(), .directory = "/d"}};
  const auto text =
      line(R"({"ok":true,"shares":[{"share":)", kCapped,
           R"(,"directory":"/run/gantry/shares/train/fence","held":true,"refused":3,)"
           R"("gpus":[{"uuid":"GPU-1","memoryTotal":7,"memoryLimit":18446744073709551615,)"
           R"("memoryHeld":5,"memoryUsed":6,"part":3000,"used":2500,"measured":-10000,)"
           R"("gate":"open","busy":true,)"
           R"("strangers":[{"pid":7,"memoryUsed":8,"command":"other"}]}],)"
           R"("processes":[{"pid":9,"innerPid":1,"command":"a \"b\"",)"
           R"("gpus":[{"memoryHeld":5,"memoryUsed":0,"launches":8,"contexts":1,"waiting":0,)"
           R"("busy":false}]}],"moreProcesses":2,)"
           R"("findings":[{"atUnixMs":5,"kind":"memory","pid":9,"text":"too much",)"
           R"("stopped":false}]},{"share":)") +
      line("", kWeighted,
           R"(,"directory":"/d","held":false,"refused":0,"gpus":[],"processes":[],)"
           R"("moreProcesses":0,"findings":[]}]})");
  EXPECT_EQ(to_response(states), text);
  const auto read = parse_response(text);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, states);

  EXPECT_EQ(to_response(std::vector<ShareState>{}), R"({"ok":true,"shares":[]})");
  EXPECT_THAT(*parse_response(R"({"ok":true,"shares":[]})"), SizeIs(0));
}

// What commands print. jq and browsers round 2^64-1, and one document has one spelling.
TEST(Document, OfStates) {
  const ShareState state{.share = weighted(),
                         .directory = "/d",
                         .gpus = {{.uuid = {"GPU-1"}, .memory_limit = UINT64_MAX, .gate = "open"}}};
  const std::string text =
      R"({"version":2,"share":{"name":"b","gpus":"any","memory":"50%","compute":"none",)"
      R"("weight":"200","excess":"work-conserving","priority":"high","onViolation":"stop",)"
      R"("unattached":"pass","contextMemory":"free","backend":"fence"},"directory":"/d",)"
      R"("held":false,"refused":0,"gpus":[{"uuid":"GPU-1","memoryTotal":0,"memoryLimit":null,)"
      R"("memoryHeld":0,"memoryUsed":0,"part":0,"used":0,"measured":null,"gate":"open",)"
      R"("busy":false,"strangers":[]}],"processes":[],"moreProcesses":0,"findings":[]})";
  EXPECT_EQ(to_document(state), text);
  const auto read = parse_response(R"({"ok":true,"shares":[)" + text + "]}");
  ASSERT_TRUE(read.ok()) << "the next version may send it: " << read.error().text();
  EXPECT_EQ(*read, std::vector{state});
}

TEST(WireFormat, OfErrors) {
  const std::string text = R"({"ok":false,"code":"not found","error":"there is no share \"a\""})";
  EXPECT_EQ(to_response(Error(Errc::NotFound, "there is no share \"a\"")), text);
  const auto read = parse_response(text);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::NotFound);
  EXPECT_EQ(read.error().text(), "there is no share \"a\"");
}

// A client of the last version shows "error"; a client of this version also knows its parts.
TEST(WireFormat, OfErrorsWithARemedy) {
  const auto error = Error(Errc::NotFound, "there is no share a").advise("run `gantry share ls`");
  const std::string text =
      R"({"ok":false,"code":"not found","error":"there is no share a; run `gantry share ls`",)"
      R"("cause":"there is no share a","remedy":"run `gantry share ls`"})";
  EXPECT_EQ(to_response(error), text);
  const auto read = parse_response(text);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::NotFound);
  EXPECT_EQ(read.error().text(), error.text());
  EXPECT_EQ(read.error().cause(), "there is no share a");
  EXPECT_EQ(read.error().remedy(), "run `gantry share ls`");
}

TEST(WireFormat, OfAnErrorWithAnUnknownCodeAndNoCause) {
  const auto read = parse_response(R"({"ok":false,"code":"?","error":"no","remedy":"help"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Internal);
  EXPECT_EQ(read.error().text(), "no");
}

TEST(WireFormat, OfRecords) {
  const auto text =
      line(R"({"share":)", kCapped,
           R"(,"cards":[{"uuid":"GPU-1","memory":140},{"uuid":"MIG-2","memory":20}],)"
           R"("holder":{"pid":1,"started":2},"adopted":[{"pid":3,"started":4}],)"
           R"("contained":[],"attached":[{"pid":5,"started":6},{"pid":7,"started":8}]})");
  const ShareRecord record{.share = capped(),
                           .cards = {{{"GPU-1"}, 140}, {{"MIG-2"}, 20}},
                           .holder = {1, 2},
                           .adopted = {{3, 4}},
                           .attached = {{5, 6}, {7, 8}}};
  EXPECT_EQ(to_json(record), text);
  const auto read = record_from_json(text);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->share, record.share);
  ASSERT_THAT(read->cards, SizeIs(2));
  EXPECT_EQ(read->cards[1].uuid, record.cards[1].uuid);
  EXPECT_EQ(read->cards[1].memory_bytes, 20);
  EXPECT_EQ(read->holder, record.holder);
  EXPECT_EQ(read->adopted, record.adopted);
  EXPECT_EQ(read->contained, record.contained);
  EXPECT_EQ(read->attached, record.attached);
}

}  // namespace
}  // namespace gantry::daemon
