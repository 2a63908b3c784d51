// SPDX-License-Identifier: Apache-2.0
#include "net/kube/informer.hpp"

#include "base/core/text.hpp"
#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace gantry::kube {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::FakeApiServer;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Records the known objects and all calls.
class RecordingHandler : public ResourceEventHandler {
 public:
  void set(const json::Document& object) override {
    const std::lock_guard lock(mutex_);
    const auto ref = object_ref(object);
    said_.push_back(fmt::format("set {}", ref.name));
    objects_[ref.uid] = fmt::format("{}={}", ref.name, object["v"].raw());
  }
  void remove(const ObjectRef& object) override {
    const std::lock_guard lock(mutex_);
    said_.push_back(fmt::format("remove {}", object.name));
    unknown_ += objects_.erase(object.uid) == 0 ? 1 : 0;
  }
  void listed() override {
    const std::lock_guard lock(mutex_);
    said_.push_back("listed");
  }
  void on_error(const Error& error, std::chrono::milliseconds) override {
    const std::lock_guard lock(mutex_);
    on_error_ += error.text() + "\n";
  }

  std::vector<std::string> objects() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [uid, text] : objects_) all.push_back(text);
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<std::string> said() const {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  std::string on_error() const {
    const std::lock_guard lock(mutex_);
    return on_error_;
  }
  int unknown() const {
    const std::lock_guard lock(mutex_);
    return unknown_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;  // by uid
  std::vector<std::string> said_;
  std::string on_error_;
  int unknown_ = 0;  // removed and never set
};

class InformerTest : public testing::Test {
 protected:
  static std::string path(const std::string& name) { return "/api/v1/nodes/" + name; }

  void put(const std::string& name, int value) {
    server.put(path(name), fmt::format(R"({{"v":{}}})", value));
  }

  Informer follow(InformerOptions options = {}) {
    if (options.path.empty()) options.path = "/api/v1/nodes";
    options.initial_backoff = 5ms;
    options.max_backoff = 50ms;
    options.seed = 1;
    ClientConfig access;
    access.server = *http::parse_url(server.url());
    return {access, options, believer};
  }

  // Shared, because a thread of the server may still count after the test has ended.
  static std::shared_ptr<std::atomic<int>> count() { return std::make_shared<std::atomic<int>>(0); }

  bool believes(const std::vector<std::string>& objects) {
    return eventually([&] { return believer.objects() == objects; });
  }

  std::size_t asked(std::string_view part) const {
    const auto all = server.requests();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const auto& request) { return contains(request, part); }));
  }

  FakeApiServer server;
  RecordingHandler believer;
};

TEST_F(InformerTest, ListsThenFollowsEveryChange) {
  put("a", 1);
  put("b", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  EXPECT_THAT(believer.said(), ElementsAre("set a", "set b", "listed"));
  put("a", 2);
  put("c", 1);
  server.remove(path("b"));
  EXPECT_TRUE(believes({"a=2", "c=1"})) << believer.on_error();
  EXPECT_EQ(informer.counts().lists, 1U);
  EXPECT_THAT(believer.on_error(), IsEmpty());
}

TEST_F(InformerTest, OfOtherNamesNothingIsHandedOn) {
  put("a-1", 1);
  put("b-1", 1);
  auto informer = follow({.name_prefix = "a-"});
  ASSERT_TRUE(informer.wait_synced(60s));
  EXPECT_THAT(believer.said(), ElementsAre("set a-1", "listed"));
  EXPECT_EQ(informer.counts().objects, 1U);
  put("b-1", 2);
  server.remove(path("b-1"));
  put("a-2", 1);
  EXPECT_TRUE(believes({"a-1=1", "a-2=1"})) << believer.on_error();
  EXPECT_EQ(believer.unknown(), 0);
}

TEST_F(InformerTest, ReadsAllPagesOfALongList) {
  for (int i = 0; i < 25; ++i) put(fmt::format("n{:02}", i), i);
  server.page_limit(4);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  EXPECT_EQ(believer.objects().size(), 25U);
  EXPECT_EQ(asked("continue="), 6U);
}

TEST_F(InformerTest, APageThatIsTooLargeForADocumentIsReadInSmallerOnes) {
  for (const auto* name : {"a", "b", "c", "d", "e", "f", "g"}) put(name, 1);
  server.override_answers([large = std::string((std::size_t{8} << 20) + 1, ' ')](
                              const http::Request& request) -> std::unique_ptr<http::Response> {
    const auto limit = std::string_view(request.target).substr(request.target.find("limit=") + 6);
    const auto objects = parse_u64(limit.substr(0, limit.find('&')));
    if (contains(request.target, "watch=") || objects < 4) return nullptr;
    return std::make_unique<http::Response>(
        http::Response{.status = 200, .headers = {}, .body = large});
  });
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s)) << believer.on_error();
  EXPECT_EQ(believer.objects().size(), 7U);
}

TEST_F(InformerTest, AWatchThatBreaksGoesOnFromWhereItWas) {
  put("a", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  server.end_watches();
  put("b", 1);
  server.remove(path("a"));
  EXPECT_TRUE(believes({"b=1"}));
  EXPECT_EQ(informer.counts().lists, 1U) << "a new list was not needed";
}

TEST_F(InformerTest, WhatWentAwayWhileTheServerForgotIsRemoved) {
  put("a", 1);
  put("b", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  server.override_answers([](const http::Request&) {
    return std::make_unique<http::Response>(http::Response{.status = 503});
  });
  server.end_watches();
  server.remove(path("a"));
  put("c", 1);
  server.forget_history();
  server.override_answers({});
  EXPECT_TRUE(believes({"b=1", "c=1"})) << believer.on_error();
  EXPECT_THAT(believer.on_error(), HasSubstr("410 too old"));
  EXPECT_TRUE(eventually([&] { return informer.counts().lists == 2; }));
}

TEST_F(InformerTest, AWatchRefusedWithGoneMeansAList) {
  put("a", 1);
  server.override_answers(
      [refused = count()](const http::Request& request) -> std::unique_ptr<http::Response> {
        if (!contains(request.target, "watch=true") || ++*refused > 1) return nullptr;
        return std::make_unique<http::Response>(
            http::Response{.status = 410, .headers = {}, .body = R"({"message":"too old"})"});
      });
  auto informer = follow();
  EXPECT_TRUE(eventually([&] { return informer.counts().lists == 2; })) << believer.on_error();
}

TEST_F(InformerTest, AReplacedObjectOfTheSameNameIsARemoveAndASet) {
  put("a", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  // While there is no watch, the object gets another uid under the same name.
  server.override_answers([](const http::Request&) {
    return std::make_unique<http::Response>(http::Response{.status = 500});
  });
  server.end_watches();
  server.remove(path("a"));
  put("a", 2);
  server.forget_history();
  server.override_answers({});
  EXPECT_TRUE(believes({"a=2"}));
  ASSERT_TRUE(eventually([&] { return informer.counts().lists == 2; }));
  EXPECT_THAT(believer.said(), ElementsAre("set a", "listed", "remove a", "set a", "listed"));
}

TEST_F(InformerTest, BookmarksMoveTheVersionFromWhichAWatchGoesOn) {
  put("a", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  server.forget_history();  // our version is too old now; the bookmark updates it
  server.bookmark();
  ASSERT_TRUE(eventually([&] { return informer.counts().events == 1; }));
  server.end_watches();
  put("b", 1);
  EXPECT_TRUE(believes({"a=1", "b=1"}));
  EXPECT_EQ(informer.counts().lists, 1U) << believer.on_error();
}

TEST_F(InformerTest, HalfALineIsNoEventAndNothingIsLost) {
  put("a", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  server.send(R"({"type":"DELETED","object":{"metadata":{"name":"a","uid":"uid-1)");
  server.end_watches();
  put("b", 1);
  EXPECT_TRUE(believes({"a=1", "b=1"})) << believer.on_error();
}

TEST_F(InformerTest, LinesThatAreNoEventsLeadToANewListAndNotToALoop) {
  put("a", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  for (const auto* line : {"{}\n", "no json\n", "[]\n",
                           R"({"type":"ADDED","object":7})"
                           "\n"}) {
    ASSERT_TRUE(eventually([&] { return server.watches() > 0; }));
    const auto failures = informer.counts().failures;
    ASSERT_TRUE(eventually([&] {  // the newest watch may not have begun yet
      server.send(line);
      return informer.counts().failures > failures;
    })) << line;
    server.end_watches();
  }
  put("b", 1);
  EXPECT_TRUE(believes({"a=1", "b=1"})) << believer.on_error();
}

TEST_F(InformerTest, AServerThatIsAwayIsAskedLessAndLessOften) {
  const auto asked = count();
  server.override_answers([asked](const http::Request&) {
    ++*asked;
    return std::make_unique<http::Response>(http::Response{.status = 503});
  });
  put("a", 1);
  auto informer = follow();
  EXPECT_FALSE(informer.wait_synced(300ms));
  EXPECT_FALSE(informer.synced());
  EXPECT_LT(asked->load(), 30);  // 5, 10, 20, 40, 50, 50, ... ms
  server.override_answers({});
  EXPECT_TRUE(informer.wait_synced(60s));
  EXPECT_THAT(believer.objects(), ElementsAre("a=1"));
}

TEST_F(InformerTest, AServerThatAsksForAPauseGetsIt) {
  const auto asked = count();
  server.override_answers([asked](const http::Request&) {
    ++*asked;
    return std::make_unique<http::Response>(
        http::Response{.status = 429, .headers = {{"Retry-After", "1"}}, .body = ""});
  });
  put("a", 1);
  auto informer = follow();
  EXPECT_FALSE(informer.wait_synced(700ms));
  EXPECT_EQ(asked->load(), 1);
  server.override_answers({});
  EXPECT_TRUE(informer.wait_synced(60s));
}

TEST_F(InformerTest, AServerThatKnowsNoVersionIsAskedForTheListLessAndLessOften) {
  put("a", 1);
  server.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
    if (!contains(request.target, "watch=true")) return nullptr;
    return std::make_unique<http::Response>(
        http::Response{.status = 410, .headers = {}, .body = R"({"message":"too old"})"});
  });
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(informer.counts().lists, 30U);  // 5, 10, 20, 40, 50, 50, ... ms; in step: 100
  server.override_answers({});
  put("b", 1);
  EXPECT_TRUE(believes({"a=1", "b=1"})) << believer.on_error();
}

TEST_F(InformerTest, AServerThatEndsEachWatchAfterAnEventCausesNoLoad) {
  put("a", 1);
  server.override_answers([](const http::Request& request) -> std::unique_ptr<http::Response> {
    if (!contains(request.target, "watch=true")) return nullptr;
    return std::make_unique<http::Response>(http::Response{
        .status = 200,
        .headers = {},
        .body = R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})"
                "\n"});
  });
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(informer.counts().watches, 80U);  // a pause of 4 to 6 ms after each
  EXPECT_EQ(informer.counts().failures, 0U) << believer.on_error();
  EXPECT_EQ(informer.counts().lists, 1U);
}

TEST_F(InformerTest, AListThatFailsInItsMiddleRemovesNothing) {
  for (int i = 0; i < 6; ++i) put(fmt::format("n{}", i), 1);
  server.page_limit(2);
  server.override_answers(
      [pages = count()](const http::Request& request) -> std::unique_ptr<http::Response> {
        if (!contains(request.target, "continue=") || ++*pages != 2) return nullptr;
        return std::make_unique<http::Response>(
            http::Response{.status = 410, .headers = {}, .body = R"({"message":"token expired"})"});
      });
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  EXPECT_EQ(believer.objects().size(), 6U);
  EXPECT_THAT(believer.on_error(), HasSubstr("token expired"));
  EXPECT_THAT(believer.said(), testing::Not(Contains(HasSubstr("remove"))));
}

TEST_F(InformerTest, ListsAgainFromTimeToTime) {
  put("a", 1);
  auto informer = follow({.resync = 30ms});
  EXPECT_TRUE(eventually([&] { return informer.counts().lists >= 3; }));
}

TEST_F(InformerTest, AWatchWhoseTimeIsOverIsFollowedByAnother) {
  auto informer = follow({.watch = 1ms});
  ASSERT_TRUE(eventually([&] { return informer.counts().watches >= 2; }));
  EXPECT_EQ(informer.counts().lists, 1U);
  EXPECT_EQ(informer.counts().failures, 0U) << believer.on_error();
}

TEST_F(InformerTest, SelectorsGoWithListAndWatch) {
  auto informer = follow(
      {.path = "/api/v1/pods", .field_selector = "spec.nodeName=n1", .label_selector = "a=b"});
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  EXPECT_EQ(asked("fieldSelector=spec.nodeName%3Dn1&labelSelector=a%3Db"), 2U);
}

TEST_F(InformerTest, StopsAtOnceInTheMiddleOfAWatchAndOfAnAnswerThatNeverComes) {
  put("a", 1);
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  ASSERT_TRUE(eventually([&] { return server.watches() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  informer.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);  // the watch has five minutes

  const auto asked = count();
  const auto enough = count();
  server.override_answers([=](const http::Request&) -> std::unique_ptr<http::Response> {
    ++*asked;
    eventually([&] { return *enough > 0; });
    return nullptr;
  });
  auto second = follow();
  ASSERT_TRUE(eventually([&] { return *asked > 0; }));
  second.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);  // the request has thirty seconds
  EXPECT_FALSE(second.wait_synced(60s));
  ++*enough;
}

TEST_F(InformerTest, ManyChangesWithBrokenWatchesEndInTheSameState) {
  auto informer = follow();
  ASSERT_TRUE(informer.wait_synced(60s));
  std::uint32_t random = 7;
  for (int i = 0; i < 400; ++i) {
    random = random * 1664525 + 1013904223;
    const auto name = fmt::format("n{}", (random >> 24) % 12);
    switch ((random >> 16) % 8) {
      case 0: server.end_watches(); break;
      case 1: server.remove(path(name)); break;
      case 2: server.bookmark(); break;
      case 3:
        if (i % 5 == 0) server.forget_history();
        break;
      default: put(name, i);
    }
    if (i % 40 == 0) std::this_thread::sleep_for(1ms);
  }
  put("last", 1);
  std::vector<std::string> expected;
  for (int i = 0; i < 12; ++i) {
    const auto text = server.get(path(fmt::format("n{}", i)));
    if (text.empty()) continue;
    const auto object = json::Document::parse(text);
    expected.push_back(fmt::format("n{}={}", i, (*object)["v"].raw()));
  }
  expected.emplace_back("last=1");
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(believes(expected)) << believer.on_error();
  EXPECT_EQ(believer.unknown(), 0);
}

}  // namespace
}  // namespace gantry::kube
