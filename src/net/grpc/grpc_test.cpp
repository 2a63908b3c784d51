// SPDX-License-Identifier: Apache-2.0
// Our client and our server in one loop. grpc_peer_test.cpp tests both against a real gRPC.
#include "net/grpc/client.hpp"
#include "net/grpc/server.hpp"
#include "net/grpc/socket.hpp"
#include "support/tree.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <gmock/gmock.h>

#include <optional>

namespace gantry::grpc {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr milliseconds kSoon{20000};

struct Answer {
  CallStatus outcome;
  std::string reply;
};

class Rpc : public testing::Test {
 protected:
  void SetUp() override {
    server_.on("/t.Echo/Say", [](const std::string& request, const Responder& reply) {
      reply.answer("you said " + request);
    });
    server_.on("/t.Echo/Fail", [](const std::string& request, const Responder& reply) {
      reply.fail({StatusCode::FailedPrecondition, request});
    });
    server_.on("/t.Echo/Keep", [this](const std::string&, const Responder& reply) {
      kept_ = reply;
      reply.on_cancelled([this] { gone_ = true; });
    });
    ASSERT_TRUE(server_.listen(path_).ok());
  }

  template <class Condition>
  bool until(Condition condition, milliseconds at_most = kSoon) {
    const auto end = std::chrono::steady_clock::now() + at_most;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(loop_->turn(milliseconds{20}).ok());
    }
    return condition();
  }

  Answer call(std::string_view method, std::string request, milliseconds deadline = kSoon) {
    std::optional<Answer> answer;
    client_.call(method, std::move(request), deadline,
                 [&](const CallStatus& outcome, std::string reply) {
                   answer = Answer{outcome, std::move(reply)};
                 });
    EXPECT_FALSE(answer.has_value());  // never before call() has returned
    EXPECT_TRUE(until([&] { return answer.has_value(); }, deadline + kSoon));
    return answer.value_or(Answer{});
  }

  test::Tree tree_;
  std::string path_ = tree_.path("s.sock");
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  Server server_{*loop_};
  Client client_{*loop_, path_};
  std::optional<Responder> kept_;
  bool gone_ = false;
};

TEST_F(Rpc, ACallIsAnswered) {
  EXPECT_EQ(call("/t.Echo/Say", "hello").reply, "you said hello");
}

TEST_F(Rpc, CallsShareOneConnection) {
  EXPECT_EQ(call("/t.Echo/Say", "a").reply, "you said a");
  EXPECT_EQ(call("/t.Echo/Say", "b").reply, "you said b");
  EXPECT_EQ(server_.connection_count(), 1U);
}

TEST_F(Rpc, AnErrorKeepsItsCodeAndEveryCharacterOfItsText) {
  const std::string text = "GPU-1 is 50% lost\nsee ä";
  EXPECT_EQ(call("/t.Echo/Fail", text).outcome, (CallStatus{StatusCode::FailedPrecondition, text}));
}

TEST_F(Rpc, AnUnknownMethodIsUnimplemented) {
  const auto answer = call("/t.Echo/Sing", "");
  EXPECT_EQ(answer.outcome.code, StatusCode::Unimplemented);
  EXPECT_THAT(answer.outcome.message, HasSubstr("/t.Echo/Sing"));
}

TEST_F(Rpc, MessagesUpToTheLimitPassInBothDirections) {
  const std::string large((std::size_t{4} << 20) - 16, 'x');
  const auto answer = call("/t.Echo/Say", large, milliseconds{20'000});
  EXPECT_EQ(answer.outcome, CallStatus{});
  EXPECT_EQ(answer.reply.size(), large.size() + 9);
}

TEST_F(Rpc, ARequestBeyondTheLimitIsRefusedAndTheConnectionGoesOn) {
  const std::string large((std::size_t{4} << 20) + 1, 'x');
  EXPECT_EQ(call("/t.Echo/Say", large, milliseconds{20'000}).outcome.code,
            StatusCode::ResourceExhausted);
  EXPECT_EQ(call("/t.Echo/Say", "still there").outcome, CallStatus{});
  EXPECT_EQ(server_.connection_count(), 1U);
}

TEST_F(Rpc, AnAnswerBeyondTheClientsLimitIsRefused) {
  Client small(*loop_, path_, {.message_limit = 16});
  std::optional<CallStatus> outcome;
  small.call("/t.Echo/Say", "a long story", kSoon,
             [&](const CallStatus& how, const std::string&) { outcome = how; });
  ASSERT_TRUE(until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code, StatusCode::ResourceExhausted);
}

TEST_F(Rpc, AReplyMayBeKeptAndAnsweredLater) {
  std::optional<Answer> answer;
  client_.call("/t.Echo/Keep", "", kSoon, [&](const CallStatus& outcome, std::string reply) {
    answer = Answer{outcome, std::move(reply)};
  });
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  EXPECT_FALSE(server_.quiet());
  EXPECT_FALSE(kept_->over());
  kept_->answer("at last");
  ASSERT_TRUE(until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->reply, "at last");
  EXPECT_TRUE(kept_->over());
  EXPECT_FALSE(gone_);
  EXPECT_TRUE(server_.quiet());
}

TEST_F(Rpc, AReplyThatIsDroppedTellsItsCaller) {
  server_.on("/t.Echo/Drop", [](const std::string&, const Responder&) {});
  EXPECT_EQ(call("/t.Echo/Drop", "").outcome.code, StatusCode::Internal);
}

TEST_F(Rpc, ADeadlineEndsTheCallOnBothSides) {
  EXPECT_EQ(call("/t.Echo/Keep", "", milliseconds{300}).outcome.code, StatusCode::DeadlineExceeded);
  EXPECT_TRUE(until([&] { return gone_; }));
  EXPECT_TRUE(kept_->over());
  kept_->answer("too late");  // has no effect
}

TEST_F(Rpc, AServerThatDiesMakesItsCallsUnavailable) {
  auto server = std::make_unique<Server>(*loop_);
  server->on("/t.Echo/Keep", [this](const std::string&, const Responder& reply) { kept_ = reply; });
  const std::string path = tree_.path("mortal.sock");
  ASSERT_TRUE(server->listen(path).ok());
  Client client(*loop_, path);
  std::optional<CallStatus> outcome;
  client.call("/t.Echo/Keep", "", kSoon,
              [&](const CallStatus& how, const std::string&) { outcome = how; });
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  server.reset();
  EXPECT_TRUE(kept_->over());
  ASSERT_TRUE(until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code, StatusCode::Unavailable);

  // The same client finds a new server at the same path.
  server_.stop_listening();
  ASSERT_TRUE(server_.listen(path).ok());
  outcome.reset();
  client.call("/t.Echo/Say", "", kSoon,
              [&](const CallStatus& how, const std::string&) { outcome = how; });
  ASSERT_TRUE(until([&] { return outcome.has_value(); }));
  EXPECT_TRUE(outcome->ok());
}

TEST_F(Rpc, ASocketWithoutAServerIsUnavailableWithThePath) {
  Client client(*loop_, tree_.path("nobody.sock"));
  std::optional<CallStatus> outcome;
  client.call("/t.Echo/Say", "", kSoon,
              [&](const CallStatus& how, const std::string&) { outcome = how; });
  ASSERT_TRUE(until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code, StatusCode::Unavailable);
  EXPECT_THAT(outcome->message, HasSubstr("nobody.sock: No such file"));
}

TEST_F(Rpc, AClientThatWentIsNotCalledBack) {
  bool called = false;
  {
    Client client(*loop_, path_);
    client.call("/t.Echo/Keep", "", milliseconds{20},
                [&](const CallStatus&, const std::string&) { called = true; });
    Client nowhere(*loop_, tree_.path("nobody.sock"));
    nowhere.call("/x/y", "", kSoon, [&](const CallStatus&, const std::string&) { called = true; });
  }
  until([] { return false; }, milliseconds{50});
  EXPECT_FALSE(called);
}

TEST_F(Rpc, AStreamBringsItsMessagesInOrderAndItsEnd) {
  server_.on("/t.Echo/Count", [](const std::string&, const Responder& reply) {
    for (const auto* word : {"one", "two", "three"}) reply.send(word);
    reply.finish({StatusCode::Aborted, "enough"});
  });
  std::vector<std::string> words;
  std::optional<CallStatus> end;
  const auto stream = client_.stream(
      "/t.Echo/Count", "", [&](std::string word) { words.push_back(std::move(word)); },
      [&](const CallStatus& outcome) { end = outcome; });
  ASSERT_TRUE(until([&] { return end.has_value(); }));
  EXPECT_THAT(words, ElementsAre("one", "two", "three"));
  EXPECT_EQ(*end, (CallStatus{StatusCode::Aborted, "enough"}));
}

TEST_F(Rpc, ACancelledStreamIsSeenByItsServer) {
  auto stream = client_.stream(
      "/t.Echo/Keep", "", [](const std::string&) {}, [](const CallStatus&) { FAIL(); });
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  kept_->send("first");
  until([] { return false; }, milliseconds{20});
  stream.cancel();
  EXPECT_TRUE(until([&] { return gone_; }));
}

// A peer that opened a stream and reads nothing of it: its window fills, then we stop.
TEST_F(Rpc, OnlyTheLatestMessageWaitsForASlowReader) {
  std::vector<std::string> got;
  const auto stream = client_.stream(
      "/t.Echo/Keep", "", [&](std::string m) { got.push_back(std::move(m)); },
      [](const CallStatus&) {});
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  for (int i = 0; i < 100; ++i) kept_->send_latest(std::to_string(i));
  ASSERT_TRUE(until([&] { return !got.empty(); }));
  EXPECT_THAT(got, ElementsAre("99"));
}

TEST_F(Rpc, AReaderThatLetsTooMuchWaitLosesItsStream) {
  std::optional<CallStatus> end;
  const auto stream = client_.stream(
      "/t.Echo/Keep", "", [](const std::string&) {},
      [&](const CallStatus& outcome) { end = outcome; });
  ASSERT_TRUE(until([&] { return kept_.has_value(); }));
  const std::string piece(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 20; ++i) kept_->send(piece);
  EXPECT_TRUE(kept_->over());
  ASSERT_TRUE(until([&] { return end.has_value(); }));
  EXPECT_EQ(end->code, StatusCode::ResourceExhausted);
}

TEST_F(Rpc, AfterGoAwayTheNextCallTakesANewConnection) {
  EXPECT_EQ(call("/t.Echo/Say", "a").reply, "you said a");
  server_.go_away();
  until([] { return false; }, milliseconds{20});
  EXPECT_EQ(call("/t.Echo/Say", "b").reply, "you said b");
}

TEST_F(Rpc, AHandlerMayEndItsServer) {
  auto server = std::make_unique<Server>(*loop_);
  server->on("/t.Echo/End", [&](const std::string&, const Responder& reply) {
    reply.answer("bye");
    server.reset();
  });
  const std::string path = tree_.path("ends.sock");
  ASSERT_TRUE(server->listen(path).ok());
  Client client(*loop_, path);
  std::optional<CallStatus> outcome;
  client.call("/t.Echo/End", "", kSoon,
              [&](const CallStatus& how, const std::string&) { outcome = how; });
  ASSERT_TRUE(until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code, StatusCode::Unavailable);  // it ended before the answer had left
  EXPECT_FALSE(tree_.host().exists("/ends.sock"));
}

TEST_F(Rpc, AnAnswerCallbackMayEndItsClient) {
  auto client = std::make_unique<Client>(*loop_, path_);
  bool done = false;
  client->call("/t.Echo/Say", "", kSoon, [&](const CallStatus&, const std::string&) {
    client.reset();
    done = true;
  });
  EXPECT_TRUE(until([&] { return done; }));
}

TEST_F(Rpc, ManyCallsAtOnceAreAllAnswered) {
  int answered = 0;
  for (int i = 0; i < 500; ++i) {
    client_.call("/t.Echo/Say", "x", kSoon, [&](const CallStatus& outcome, const std::string&) {
      answered += outcome.ok() ? 1 : 0;
    });
  }
  EXPECT_TRUE(until([&] { return answered == 500; }));
}

TEST_F(Rpc, TheSocketIsItsOwnersAloneAndGoesWithTheServer) {
  struct stat st {};
  ASSERT_EQ(::lstat(path_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777U, 0600U);
  EXPECT_EQ(Server(*loop_).listen(path_).error().code(), Errc::Exists);
  server_.stop_listening();
  EXPECT_NE(::lstat(path_.c_str(), &st), 0);
}

TEST_F(Rpc, AServerLeavesASocketAloneThatTookItsPlace) {
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  Server other(*loop_);
  ASSERT_TRUE(other.listen(path_).ok());
  server_.stop_listening();
  EXPECT_TRUE(tree_.host().exists("/s.sock"));
}

TEST_F(Rpc, APathThatNoSocketCanHaveIsInvalid) {
  EXPECT_EQ(server_.listen(std::string(120, 'x')).error().code(), Errc::Invalid);
}

TEST_F(Rpc, GarbageAndHalfFramesCostTheirOwnConnectionOnly) {
  const auto garbage = connect_unix(path_);
  const auto half = connect_unix(path_);
  ASSERT_TRUE(garbage.ok() && half.ok());
  const std::string_view start = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  ::send(garbage->get(), "GET / HTTP/1.1\r\n\r\n this is not HTTP/2", 37, MSG_NOSIGNAL);
  ::send(half->get(), start.data(), start.size() - 3, MSG_NOSIGNAL);
  EXPECT_EQ(call("/t.Echo/Say", "a").reply, "you said a");
  EXPECT_TRUE(
      until([&] { return server_.connection_count() == 2; }));  // the client's and the half one
}

// The server's settings, and the first bytes of an answer's headers.
TEST_F(Rpc, AnAnswerThatBreaksOffInTheMiddleIsUnavailable) {
  const std::string path = tree_.path("breaks.sock");
  const auto listener = *listen_unix(path);
  Client client(*loop_, path);
  std::optional<CallStatus> outcome;
  client.call("/t.Echo/Say", "", kSoon,
              [&](const CallStatus& how, const std::string&) { outcome = how; });
  sys::UniqueFd peer;
  ASSERT_TRUE(until([&] {
    if (!peer.valid())
      peer = sys::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return peer.valid();
  }));
  const std::string_view half("\0\0\0\4\0\0\0\0\0\0\0\x35\1\4\0\0\0\1\x88", 19);
  ASSERT_EQ(::send(peer.get(), half.data(), half.size(), MSG_NOSIGNAL), 19);
  until([] { return false; }, milliseconds{20});
  EXPECT_FALSE(outcome);
  peer.reset();
  ASSERT_TRUE(until([&] { return outcome.has_value(); }));
  EXPECT_EQ(outcome->code, StatusCode::Unavailable);
}

// A reader that does not read: its window fills up, then only the latest message waits for it.
TEST_F(Rpc, AReaderThatComesBackGetsTheLatestMessageNotAllOfThem) {
  const auto still = *sys::Loop::make();
  Client reader(*still, path_);
  std::vector<std::string> got;
  const auto stream = reader.stream(
      "/t.Echo/Keep", "", [&](std::string message) { got.push_back(std::move(message)); },
      [](const CallStatus&) {});
  ASSERT_TRUE(until([&] {
    EXPECT_TRUE(still->turn(milliseconds{1}).ok());
    return kept_.has_value();
  }));
  for (int i = 0; i < 200; ++i) {
    kept_->send_latest(std::string(std::size_t{1} << 20, 'x') + std::to_string(i));
    EXPECT_TRUE(loop_->turn(milliseconds{0}).ok());
  }
  EXPECT_FALSE(kept_->over());
  ASSERT_TRUE(until([&] {
    EXPECT_TRUE(still->turn(milliseconds{1}).ok());
    return !got.empty() && got.back().ends_with("x199");
  }));
  EXPECT_LE(got.size(), 3U);
}

TEST_F(Rpc, ConnectionsBeyondTheLimitAreClosedAtOnce) {
  Server server(*loop_, {.connection_limit = 1});
  const std::string path = tree_.path("narrow.sock");
  ASSERT_TRUE(server.listen(path).ok());
  const auto first = *connect_unix(path);
  const auto second = *connect_unix(path);
  char byte = 0;
  EXPECT_TRUE(until([&] { return ::recv(second.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  EXPECT_EQ(server.connection_count(), 1U);
}

TEST(CallOnce, BlocksUntilTheDeadlineAndSaysWho) {
  const test::Tree tree;
  const auto loop = *sys::Loop::make();
  Server server(*loop);
  ASSERT_TRUE(server.listen(tree.path("deaf.sock")).ok());  // and its loop never turns
  const auto answer = call_once(tree.path("deaf.sock"), "/a/B", "", milliseconds{30});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::Timeout);
  EXPECT_THAT(answer.error().text(), HasSubstr("/a/B at "));
}

}  // namespace
}  // namespace gantry::grpc
