// SPDX-License-Identifier: Apache-2.0
// Clients that take as much as they can: every bound of the server, and that the others are served.
#include "net/http/server_for_test.hpp"

#include <algorithm>
#include <atomic>

namespace gantry::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ServerTest, ServesOthersWhileAClientSendsSlowlyAndEndsIt) {
  const auto server = start({.workers = 1, .request_time = 300ms});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<RawClient>(server->port()));
    slow.back()->send("POST /echo HTTP/1.1\r\nContent-Length: 100\r\n\r\nx");
  }
  auto client = client_of(*server);
  EXPECT_EQ(client.send({.target = "/healthz"}, 60s)->body, "ok");
  EXPECT_THAT(slow[0]->read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(ServerTest, ATrickleOfBytesDoesNotBuyTime) {
  const auto server = start({.request_time = 300ms});
  const RawClient raw(server->port());
  raw.send("POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
  std::atomic<bool> over = false;
  std::thread trickle([&] {
    while (!over) {
      raw.send("x");
      std::this_thread::sleep_for(5ms);
    }
  });
  EXPECT_THAT(raw.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 408 "));
  over = true;
  trickle.join();
}

TEST_F(ServerTest, ClosesIdleConnections) {
  const auto server = start({.idle_time = 50ms});
  const RawClient raw(server->port());
  raw.send(get("/healthz"));
  EXPECT_THAT(raw.read_all(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, ManyConnectionsMakeRoomForNewOnes) {
  const auto server = start({.connections = 4});
  std::vector<std::unique_ptr<RawClient>> held;
  held.reserve(12);
  for (int i = 0; i < 12; ++i) held.push_back(std::make_unique<RawClient>(server->port()));
  auto client = client_of(*server);
  EXPECT_EQ(client.send({.target = "/healthz"}, 60s)->body, "ok");
  EXPECT_LE(server->counts().connections, 4U);
}

TEST_F(ServerTest, AnAddressWithManyConnectionsMakesRoomItself) {
  const auto server = start({.connections = 100, .connections_per_address = 4});
  const RawClient other(server->port(), "127.0.0.2");
  std::vector<std::unique_ptr<RawClient>> held;
  held.reserve(12);
  for (int i = 0; i < 12; ++i) {
    held.push_back(std::make_unique<RawClient>(server->port(), "127.0.0.3"));
    held.back()->send(get("/healthz"));
    EXPECT_THAT(held.back()->read_until("ok"), HasSubstr("ok"));
  }
  EXPECT_EQ(server->counts().connections, 5U);
  EXPECT_EQ(held[7]->read_all(), "") << "closed";
  other.send(get_and_close("/healthz"));
  EXPECT_THAT(other.read_all(), HasSubstr("ok")) << "the older connection of another address";
}

TEST_F(ServerTest, AFullServerClosesAConnectionOfTheNewOnesAddressFirst) {
  const auto server = start({.connections = 3});
  const RawClient other(server->port(), "127.0.0.2");
  other.send(get("/healthz"));
  ASSERT_THAT(other.read_until("ok"), HasSubstr("ok"));
  const RawClient first(server->port(), "127.0.0.3");
  const RawClient second(server->port(), "127.0.0.3");
  const RawClient third(server->port(), "127.0.0.3");
  EXPECT_EQ(first.read_all(), "") << "closed";
  other.send(get_and_close("/healthz"));
  EXPECT_THAT(other.read_all(), HasSubstr("ok")) << "idle for longer, but of another address";
}

TEST_F(ServerTest, ABusyConnectionIsNotClosedForANewOne) {
  const auto server = start({.workers = 2, .connections = 2});
  const RawClient first(server->port());
  const RawClient second(server->port());
  first.send(post("/wait", ""));
  second.send(post("/wait", ""));
  ASSERT_TRUE(latch.await_waiting(2));
  const RawClient third(server->port());
  EXPECT_EQ(third.read_all(), "");  // closed
  latch.open();
  EXPECT_THAT(first.read_until("waited"), HasSubstr("waited"));
  EXPECT_THAT(second.read_until("waited"), HasSubstr("waited"));
}

TEST_F(ServerTest, ABusyConnectionIsClosedWhereTheOptionsSaySo) {
  const auto server = start({.workers = 2, .connections = 1, .eviction = Eviction::Oldest});
  const RawClient first(server->port());
  first.send(post("/wait", ""));
  ASSERT_TRUE(latch.await_waiting(1));
  const RawClient second(server->port());
  second.send(get_and_close("/healthz"));
  EXPECT_THAT(second.read_all(), HasSubstr("ok"));
  EXPECT_EQ(first.read_all(), "");
  latch.open();
}

TEST_F(ServerTest, AnswersThatTooManyRequestsWait) {
  const auto server = start({.workers = 1, .waiting = 1});
  const RawClient first(server->port());
  first.send(post("/wait", ""));
  ASSERT_TRUE(latch.await_waiting(1));
  const RawClient second(server->port());
  second.send(post("/wait", ""));
  ASSERT_TRUE(eventually([&] { return server->counts().requests == 2; }));
  const RawClient third(server->port());
  third.send(post("/wait", ""));
  EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 503 "));
  latch.open();
}

TEST_F(ServerTest, BodiesTogetherAreBounded) {
  const auto server = start({.memory_limit = 1000});
  const RawClient first(server->port());
  first.send("POST /echo HTTP/1.1\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(first.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const RawClient second(server->port());
  second.send("POST /echo HTTP/1.1\r\nContent-Length: 900\r\n\r\n" + std::string(199, 'x'));
  EXPECT_THAT(second.read_all(), StartsWith("HTTP/1.1 503 "));
  first.send(std::string(900, 'y'));
  EXPECT_THAT(first.read_until("yyy"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, BodiesOfOneAddressAreBounded) {
  const auto server = start({.memory_limit = 2000, .memory_per_address = 1000});
  const std::string announce =
      "POST /echo HTTP/1.1\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n";
  const RawClient first(server->port(), "127.0.0.2");
  first.send(announce);
  ASSERT_THAT(first.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const RawClient second(server->port(), "127.0.0.2");
  second.send(announce);
  EXPECT_THAT(second.read_all(), StartsWith("HTTP/1.1 503 "));
  const RawClient other(server->port(), "127.0.0.3");
  other.send(announce);
  EXPECT_THAT(other.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
}

TEST_F(ServerTest, AClientThatAnnouncesMuchAndSendsNothingMakesRoom) {
  const auto server = start({.memory_limit = 1000});
  const RawClient large(server->port());
  large.send("POST /echo HTTP/1.1\r\nContent-Length: 600\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(large.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const RawClient other(server->port());
  other.send("POST /echo HTTP/1.1\r\nContent-Length: 400\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(other.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const RawClient small(server->port());
  small.send("POST /echo HTTP/1.1\r\nContent-Length: 200\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(small.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  small.send(std::string(200, 'x'));
  EXPECT_THAT(small.read_until("xxx"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(large.read_all(), "") << "closed";
  other.send(std::string(400, 'y'));
  EXPECT_THAT(other.read_until("yyy"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, UnreadAnswersAreBounded) {
  const auto server = start({.memory_limit = kLarge + kLarge / 4});
  const RawClient first(server->port());
  first.send(get_and_close("/large"));
  const auto head = first.read_until("\r\n\r\n");
  const RawClient second(server->port());
  second.send(get_and_close("/large"));
  EXPECT_THAT(second.read_all(), StartsWith("HTTP/1.1 503 "));
  EXPECT_GT(head.size() + first.read_all().size(), kLarge);
}

TEST_F(ServerTest, EndsAClientThatDoesNotReadItsAnswer) {
  const auto server = start({.request_time = 200ms});
  const RawClient raw(server->port());
  raw.send(get_and_close("/large"));
  ASSERT_TRUE(eventually([&] { return server->counts().held_bytes > kLarge / 4; }));
  EXPECT_TRUE(eventually([&] { return server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().held_bytes, 0U);
}

class PipelineTest : public ServerTest {
 protected:
  static constexpr std::size_t kClients = 48;
  ServerOptions options() const {
    return {.workers = 0,
            .connections = 64,
            .head_limit = 8192,
            .memory_limit = std::size_t{4} << 20,
            .send_buffer = 48 << 10,
            .receive_buffer = 16 << 10};
  }

  // Sends requests on all connections for a second, as fast as the sockets take them. Returns the
  // most bytes that the server held.
  std::size_t attack(const Server& server, std::string_view path, bool reads) {
    std::string requests;
    while (requests.size() < 65536) requests += get(path);
    std::vector<std::unique_ptr<RawClient>> clients;
    for (std::size_t i = 0; i < kClients; ++i)
      clients.push_back(std::make_unique<RawClient>(server.port()));
    std::size_t most = 0;
    const auto end = std::chrono::steady_clock::now() + 1s;
    while (std::chrono::steady_clock::now() < end) {
      for (auto& client : clients) {
        if (!client->send_at_once(requests)) client = std::make_unique<RawClient>(server.port());
        if (reads) client->read_at_once();
        most = std::max(most, server.counts().held_bytes);
      }
    }
    return most;
  }
  static constexpr std::size_t kInput = kClients * std::size_t{(8 + 16) << 10};  // head and a recv
};

// The former page server read 4 KiB and answered one request of them: its buffers grew by 60 MiB
// per second.
TEST_F(PipelineTest, RequestsStayInTheSocketUntilTheirTurn) {
  const auto server = start(options());
  EXPECT_LT(attack(*server, "/healthz", true), kInput);
  EXPECT_GT(server->counts().requests, 2 * kClients);
  EXPECT_EQ(server->counts().refused, 0U);
  auto client = client_of(*server);
  EXPECT_EQ(client.send({.target = "/healthz"}, 60s)->body, "ok") << "and it answers";
}

TEST_F(PipelineTest, UnreadAnswersStayWithinTheMemoryLimit) {
  const auto server = start(options());
  const auto most = attack(*server, "/page", false);
  EXPECT_GT(most, options().memory_limit / 2) << "the clients left answers unread";
  EXPECT_LT(most, options().memory_limit + kInput);
  EXPECT_LT(most, memory_bound(options()));
  auto client = client_of(*server);
  EXPECT_EQ(client.send({.target = "/healthz"}, 60s)->body, "ok") << "and it answers";
}

}  // namespace
}  // namespace gantry::http
