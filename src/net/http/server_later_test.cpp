// SPDX-License-Identifier: Apache-2.0
// Answers that come later, from any thread, and streams.
#include "net/http/server_for_test.hpp"

#include <atomic>
#include <optional>

namespace gantry::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Keeps what its handlers got, for the test to use from its own thread.
class LaterTest : public testing::Test {
 protected:
  std::vector<Route> routes() {
    return {
        {"GET", "/healthz", [](const Request&) { return ok_response("ok"); }},
        {"GET", "/later",
         [this](const Request&, Reply reply) {
           reply.on_gone([this] { ++gone; });
           keep(replies, std::move(reply));
         }},
        {"GET", "/stream",
         [this](const Request&, const Reply& reply) {
           auto stream = reply.stream({.headers = {{"Content-Type", "text/event-stream"}}});
           stream.on_gone([this] { ++gone; });
           keep(streams, std::move(stream));
         }},
        {"GET", "/forget", [](const Request&, const Reply&) {}},
        {"GET", "/throw", [](const Request&, const Reply&) { throw std::runtime_error("oh"); }}};
  }
  std::unique_ptr<Server> start(ServerOptions options = {}) {
    options.workers = 0;  // nothing here needs one
    return start_server(options, routes());
  }
  template <class T>
  void keep(std::vector<T>& list, T one) {
    const std::lock_guard lock(mutex);
    list.push_back(std::move(one));
  }
  template <class T>
  T kept(const std::vector<T>& list, std::size_t index = 0) {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return list.size() > index;
    }));
    const std::lock_guard lock(mutex);
    return list.at(index);
  }

  std::mutex mutex;
  std::vector<Reply> replies;
  std::vector<Stream> streams;
  std::atomic<int> gone = 0;
};

TEST_F(LaterTest, AnswersFromAnotherThreadWhileOthersAreServed) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send(get("/later"));
  const auto reply = kept(replies);
  auto client = client_of(*server);
  EXPECT_EQ(client.send({.target = "/healthz"}, 60s)->body, "ok");
  EXPECT_TRUE(reply.send(ok_response("late")));
  EXPECT_THAT(raw.read_until("late"), StartsWith("HTTP/1.1 200 "));
  EXPECT_FALSE(reply.send(ok_response("again"))) << "an answer is given once";
  EXPECT_FALSE(reply.client_gone());
  EXPECT_EQ(gone, 0);
}

TEST_F(LaterTest, AnswersAPipelineInItsOrder) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send(get("/later") + get("/healthz") + get_and_close("/last"));
  EXPECT_TRUE(kept(replies).send(ok_response("late")));
  const auto answers = raw.read_all();
  EXPECT_LT(answers.find("late"), answers.find("ok"));
  EXPECT_LT(answers.find("ok"), answers.find("404"));
}

TEST_F(LaterTest, TellsTheHandlerThatTheClientHasGone) {
  const auto server = start();
  RawClient raw(server->port());
  raw.send(get("/later"));
  const auto reply = kept(replies);
  EXPECT_FALSE(reply.client_gone());
  raw.close();
  EXPECT_TRUE(eventually([&] { return reply.client_gone(); }));
  EXPECT_TRUE(eventually([&] { return gone == 1; }));
  EXPECT_FALSE(reply.send(ok_response("late")));
}

TEST_F(LaterTest, AHandlerThatForgetsOrThrowsIsAnsweredFor) {
  const auto server = start();
  auto client = client_of(*server);
  EXPECT_THAT(client.send({.target = "/forget"}, 60s)->body, HasSubstr("gave no answer"));
  const auto thrown = client.send({.target = "/throw"}, 60s);
  EXPECT_EQ(thrown->status, 500);
}

TEST_F(LaterTest, UnansweredRequestsAreBoundedEvenIfTheirClientsHaveGone) {
  const auto server = start({.waiting = 2});
  for (std::size_t i = 0; i < 2; ++i) {
    RawClient raw(server->port());
    raw.send(get("/later"));
    const auto reply = kept(replies, i);
    raw.close();
    ASSERT_TRUE(eventually([&] { return reply.client_gone(); }));
  }
  const RawClient third(server->port());
  third.send(get("/later"));
  EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 503 "));
  {
    const std::lock_guard lock(mutex);
    replies.clear();
  }
  const RawClient fourth(server->port());
  fourth.send(get("/later"));
  EXPECT_TRUE(kept(replies).send(ok_response("late")));
  EXPECT_THAT(fourth.read_until("late"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(LaterTest, AHandleMayOutliveItsServer) {
  auto server = start({.drain_time = 20ms});
  const RawClient raw(server->port());
  raw.send(get("/later"));
  const auto reply = kept(replies);
  server.reset();
  EXPECT_TRUE(reply.client_gone());
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(reply.send(ok_response("late")));
  EXPECT_FALSE(reply.stream({}).write("x"));
}

TEST_F(LaterTest, StreamsPiecesAndKeepsTheConnection) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send(get("/stream"));
  const auto stream = kept(streams);
  const auto head = raw.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_TRUE(stream.write("one"));
  EXPECT_EQ(raw.read_until("\r\none\r\n"), "3\r\none\r\n");
  EXPECT_TRUE(stream.write("two"));
  EXPECT_TRUE(stream.write(""));  // an empty chunk would be the end
  stream.end();
  EXPECT_THAT(raw.read_until("0\r\n\r\n"), StartsWith("3\r\ntwo\r\n"));
  EXPECT_FALSE(stream.write("three"));
  raw.send(get_and_close("/healthz"));
  EXPECT_THAT(raw.read_all(), EndsWith("ok"));
  EXPECT_EQ(gone, 0);
  EXPECT_EQ(server->counts().streams, 0U);
}

TEST_F(LaterTest, OurClientReadsAStream) {
  const auto server = start();
  std::string body;
  std::thread writer([&] {
    auto stream = kept(streams);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(stream.write(fmt::format("data: {}\n\n", i)));
    stream.end();
  });
  auto client = client_of(*server);
  const auto got = client.stream(
      {.target = "/stream"},
      [&](std::string_view piece) {
        body += piece;
        return true;
      },
      60s, 60s);
  writer.join();
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_THAT(body, StartsWith("data: 0\n\ndata: 1\n\n"));
  EXPECT_THAT(body, EndsWith("data: 99\n\n"));
}

TEST_F(LaterTest, StreamsToClientsOfHttp10UntilTheConnectionCloses) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send("GET /stream HTTP/1.0\r\n\r\n");
  const auto stream = kept(streams);
  EXPECT_TRUE(stream.write("one"));
  stream.end();
  const auto all = raw.read_all();
  EXPECT_THAT(all, Not(HasSubstr("chunked")));
  EXPECT_THAT(all, EndsWith("\r\n\r\none"));
}

TEST_F(LaterTest, HeadOfAStreamHasNoBody) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send("HEAD /stream HTTP/1.1\r\n\r\n" + get_and_close("/healthz"));
  const auto all = raw.read_all();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(all, HasSubstr("\r\n\r\nHTTP/1.1 200 "));
  EXPECT_FALSE(kept(streams).write("x"));
}

TEST_F(LaterTest, AStreamEndsWithItsLastHandle) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send(get("/stream"));
  EXPECT_TRUE(kept(streams).write("one"));
  {
    const std::lock_guard lock(mutex);
    streams.clear();
  }
  EXPECT_THAT(raw.read_until("0\r\n\r\n"), EndsWith("3\r\none\r\n0\r\n\r\n"));
}

TEST_F(LaterTest, TellsAStreamThatItsClientHasGone) {
  const auto server = start();
  RawClient raw(server->port());
  raw.send(get("/stream"));
  const auto stream = kept(streams);
  EXPECT_EQ(server->counts().streams, 1U);
  (void)raw.read_until("\r\n\r\n");  // with bytes unread, the kernel would send a reset instead
  raw.close();
  EXPECT_TRUE(eventually([&] { return gone == 1; }));
  EXPECT_TRUE(stream.client_gone());
  EXPECT_FALSE(stream.write("x"));
  EXPECT_EQ(server->counts().streams, 0U);
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
}

TEST_F(LaterTest, ClosesAStreamWhoseClientReadsTooSlowly) {
  const auto server = start({.stream_limit = 100'000, .send_buffer = 16 << 10});
  const RawClient slow(server->port(), "127.0.0.1", 4096);
  slow.send(get("/stream"));
  const auto stream = kept(streams);
  const std::string event(1000, 'e');
  std::size_t written = 0;
  std::size_t most = 0;
  while (stream.write(event)) {
    written += event.size();
    most = std::max(most, server->counts().held_bytes);
    ASSERT_LT(written, 50'000'000U) << "no bound";
  }
  EXPECT_GE(written, 100'000U);
  EXPECT_LE(most, 220'000U) << "the unread bytes, and the same while they are sent in part";
  EXPECT_TRUE(eventually([&] { return gone == 1; }));
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().held_bytes, 0U);
}

TEST_F(LaterTest, ClosesAStreamWhoseClientStopsReading) {
  const auto server = start({.send_buffer = 16 << 10, .request_time = 200ms});
  const RawClient silent(server->port());
  const RawClient slow(server->port(), "127.0.0.1", 4096);
  silent.send(get("/stream"));
  (void)kept(streams);
  slow.send(get("/stream"));
  EXPECT_TRUE(kept(streams, 1).write(std::string(200'000, 'e')));
  EXPECT_TRUE(eventually([&] { return gone == 1; }));
  EXPECT_TRUE(kept(streams, 1).client_gone());
  EXPECT_TRUE(kept(streams).write("x")) << "a stream with nothing to send may be silent";
}

TEST_F(LaterTest, StreamsAreCounted) {
  const auto server = start({.streams = 2});
  const RawClient first(server->port());
  const RawClient second(server->port());
  first.send(get("/stream"));
  (void)kept(streams);
  second.send(get("/stream"));
  (void)kept(streams, 1);
  const RawClient third(server->port());
  third.send(get_and_close("/stream"));
  EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 503 "));
  EXPECT_FALSE(kept(streams, 2).write("x"));
  kept(streams).end();
  EXPECT_TRUE(eventually([&] { return server->counts().streams == 1; }));
}

TEST_F(LaterTest, EndsWithItsStreamsOpen) {
  auto server = start();
  const RawClient raw(server->port());
  raw.send(get("/stream"));
  const auto stream = kept(streams);
  EXPECT_TRUE(stream.write("one"));
  const auto before = std::chrono::steady_clock::now();
  std::thread ends([&] { server.reset(); });
  EXPECT_THAT(raw.read_all(), EndsWith("3\r\none\r\n0\r\n\r\n"));
  ends.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s) << "it does not wait for streams";
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(stream.write("two"));
}

}  // namespace
}  // namespace gantry::http
