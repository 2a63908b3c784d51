// SPDX-License-Identifier: Apache-2.0
#include "net/http/server.hpp"

#include "net/http/server_for_test.hpp"

#include <atomic>
#include <cerrno>

namespace gantry::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ServerTest, AnswersByMethodAndPath) {
  const auto server = start();
  auto client = client_of(*server);
  const auto ask = [&](const std::string& method, const std::string& target) {
    const auto got = client.send({.method = method, .target = target}, 60s);
    return got.ok() ? fmt::format("{} {}", got->status, got->body) : got.error().text();
  };
  EXPECT_EQ(ask("GET", "/healthz"), "200 ok");
  EXPECT_EQ(ask("GET", "/healthz?verbose"), "200 ok");
  EXPECT_EQ(ask("HEAD", "/healthz"), "200 ");
  EXPECT_EQ(ask("GET", "/inspect/node-1"), "200 /inspect/node-1");
  EXPECT_THAT(ask("GET", "/inspect"), StartsWith("404"));
  EXPECT_THAT(ask("POST", "/healthz"), StartsWith("405"));
  EXPECT_THAT(ask("POST", "/throw"), StartsWith("500 oh"));
  EXPECT_EQ(ask("GET", "/page").size(), 4 + 200'000U);
  EXPECT_EQ(server->counts().connections, 1U) << "one connection for all of them";
}

TEST_F(ServerTest, SaysWhichPathsAndMethodsThereAre) {
  const auto server = start();
  auto client = client_of(*server);
  const auto other = client.send({.target = "/other"}, 60s);
  ASSERT_TRUE(other.ok());
  EXPECT_THAT(other->body, AllOf(HasSubstr("there is no /other"), HasSubstr(" /healthz "),
                                 HasSubstr(" /inspect/* ")));
  const auto posted = client.send({.method = "POST", .target = "/page", .body = "x"}, 60s);
  ASSERT_TRUE(posted.ok());
  ASSERT_NE(find(posted->headers, "Allow"), nullptr);
  EXPECT_EQ(*find(posted->headers, "Allow"), "GET, HEAD");
}

TEST_F(ServerTest, RefusesBytesThatAreNotARequest) {
  const auto server = start({.head_limit = 8192});
  const auto answer = [&](const std::string& bytes) {
    const RawClient client(server->port());
    client.send(bytes);
    return client.read_all();
  };
  EXPECT_THAT(answer("\x16\x03\x01 TLS?\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer(std::string(20'000, 'a')), StartsWith("HTTP/1.1 431 "));
  EXPECT_EQ(server->counts().refused, 2U);
}

TEST_F(ServerTest, RunsHandlersWithoutWorkersInItsOwnThread) {
  const auto server = start({.workers = 0});
  auto client = client_of(*server);
  EXPECT_EQ(client.send({.target = "/healthz"}, 60s)->body, "ok");
  EXPECT_EQ(client.send({.method = "POST", .target = "/throw"}, 60s)->status, 500);
}

TEST_F(ServerTest, TakesLargeBodiesUpToTheLimit) {
  const auto server = start();
  auto client = client_of(*server);
  const std::string large(std::size_t{5} << 20, 'x');
  const auto got =
      client.send({.method = "POST", .target = "/echo", .headers = {}, .body = large}, 60s);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->body.size(), large.size());

  const RawClient raw(server->port());
  raw.send("POST /echo HTTP/1.1\r\nContent-Length: 16777217\r\n\r\nand some of it");
  EXPECT_THAT(raw.read_all(), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(server->counts().refused, 1U);
}

TEST_F(ServerTest, TellsAClientToSendItsBody) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send("POST /echo HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(raw.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.send("ab");
  EXPECT_THAT(raw.read_until("ab"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, AnswersPipelinedRequestsInTheirOrder) {
  const auto server = start();
  const RawClient raw(server->port());
  raw.send(post("/echo", "one") + post("/echo", "two") + get_and_close("/healthz"));
  const auto all = raw.read_all();
  EXPECT_LT(all.find("one"), all.find("two"));
  EXPECT_LT(all.find("two"), all.find("ok"));
}

TEST_F(ServerTest, AnswersEveryRequestOfAPipeline) {
  for (const unsigned workers : {0U, 2U}) {
    const auto server = start({.workers = workers});
    constexpr std::size_t kRequests = 2000;
    std::string requests;
    for (std::size_t i = 0; i < kRequests; ++i) requests += get(i % 2 == 0 ? "/healthz" : "/none");
    requests += get_and_close("/last");
    const RawClient raw(server->port());
    raw.send(requests);
    const auto answers = raw.read_all();
    std::size_t found = 0;
    for (auto at = answers.find("HTTP/1.1 "); at != std::string::npos;
         at = answers.find("HTTP/1.1 ", at + 1))
      ++found;
    EXPECT_EQ(found, kRequests + 1);
    EXPECT_THAT(answers, HasSubstr("/last"));
  }
}

TEST_F(ServerTest, SendsTheAnswersUnderWayBeforeItEnds) {
  auto server = start();
  const RawClient idle(server->port());
  const RawClient waits(server->port());
  waits.send(post("/wait", ""));
  ASSERT_TRUE(latch.await_waiting(1));
  std::thread ends([&] { server.reset(); });
  EXPECT_EQ(idle.read_all(), "");
  latch.open();
  const auto answer = waits.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  ends.join();
}

TEST_F(ServerTest, GivesEachOfManyClientsItsOwnAnswers) {
  const auto server = start({.workers = 4});
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  threads.reserve(8);
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      auto client = client_of(*server);
      for (int i = 0; i < 50; ++i) {
        const auto body = fmt::format("{}-{}", number, i);
        const auto got =
            client.send({.method = "POST", .target = "/echo", .headers = {}, .body = body}, 60s);
        right += got.ok() && got->body == body ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
  EXPECT_EQ(server->counts().requests, 400U);
}

TEST(HttpServer, RefusesABadKeyBeforeItListens) {
  const ServerIdentity identity{.certificates = "no", .key = "no"};
  const auto started =
      Server::start({.address = {.host = "127.0.0.1", .port = 0}, .identity = &identity}, {});
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), Errc::Invalid);
}

// A pod of an IPv6 cluster has no other address, and its probes come that way.
TEST(HttpAddress, AllAddressesIncludeIpv6) {
  const auto server = *Server::start({.address = {"", 0}}, {});
  if (const sys::UniqueFd six(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)); six.valid()) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(server->port());
    address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    const int failed =
        ::connect(six.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                         : errno;
    EXPECT_TRUE(failed == 0 || failed == EADDRNOTAVAIL) << failed;  // the latter: there is no ::1
  }
  const RawClient four(server->port());
  four.send(get_and_close("/"));
  EXPECT_THAT(four.read_all(), StartsWith("HTTP/1.1 404 "));
}

TEST(HttpAddress, IsParsed) {
  EXPECT_EQ(parse_address(":9400")->port, 9400);
  EXPECT_EQ(parse_address("[::1]:80")->host, "::1");
  for (const auto* bad : {"", "9400", "a:b", "x:70000"}) EXPECT_FALSE(parse_address(bad).ok());
}

}  // namespace
}  // namespace gantry::http
