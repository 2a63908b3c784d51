// SPDX-License-Identifier: Apache-2.0
#include "net/http/client.hpp"

#include "base/sys/stop_signal.hpp"
#include "base/sys/unique_fd.hpp"
#include "net/http/authority.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace gantry::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Answers each connection with the next text, whatever was asked, and keeps what was asked.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = sys::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  Endpoint endpoint() const { return {.host = "127.0.0.1", .port = port_, .secure = false}; }
  std::vector<std::string> asked;  // read it after the answers came
  std::atomic<int> closed = 0;     // connections

 private:
  void serve() {
    for (const auto& answer : answers_) {
      sys::UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) return;
      std::string text(4096, '\0');
      const auto got = ::recv(peer.get(), text.data(), text.size(), 0);
      text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      asked.push_back(text);
      ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      peer.reset();
      ++closed;
    }
  }

  std::vector<std::string> answers_;
  sys::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST(HttpClient, AsksAndReadsTheAnswer) {
  ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"});
  Client client(server.endpoint());
  const auto got =
      client.send({.target = "/api", .headers = {{"Accept", "application/json"}}}, 20000ms);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "{}");
  EXPECT_THAT(server.asked.at(0), HasSubstr("GET /api HTTP/1.1\r\n"));
  EXPECT_THAT(server.asked.at(0), HasSubstr("Accept: application/json\r\n"));
}

TEST(HttpClient, TheAuthorityNamesAPortThatTheSchemeDoesNotImply) {
  EXPECT_EQ(authority({.host = "example.org"}), "example.org");
  EXPECT_EQ(authority({.host = "example.org", .port = 80}), "example.org:80");
  EXPECT_EQ(authority({.host = "example.org", .port = 80, .secure = false}), "example.org");
  EXPECT_EQ(authority({.host = "::1", .port = 8443}), "[::1]:8443");
}

TEST(HttpClient, AnIdleConnectionThatDiedIsReplaced) {
  // The first answer promises to stay and then closes.
  ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
                         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"});
  Client client(server.endpoint());
  ASSERT_TRUE(client.send({}, 20000ms).ok());
  const auto second = client.send({}, 20000ms);
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_EQ(second->body, "b");
}

TEST(HttpClient, WhatChangesSomethingIsNotSentToADeadConnection) {
  ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
                         "HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nb"});
  Client client(server.endpoint());
  ASSERT_TRUE(client.send({}, 20000ms).ok());
  while (server.closed == 0) std::this_thread::sleep_for(1ms);
  const auto second = client.send({.method = "POST", .target = "/x"}, 20000ms);
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_EQ(second->status, 201);
}

TEST(HttpClient, IsStoppedInTheMiddleOfAnAnswerThatNeverComes) {
  const sys::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size);
  sys::StopSignal stop;
  Client client({.host = "127.0.0.1", .port = ntohs(address.sin_port), .secure = false}, stop.fd());
  std::thread stopper([&] { stop.raise(); });
  const auto begin = std::chrono::steady_clock::now();
  const auto got = client.send({}, 1h);
  stopper.join();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(HttpClient, AnAnswerCutShortIsAnError) {
  ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"});
  Client client(server.endpoint());
  const auto got = client.send({}, 20000ms);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Corrupt);
}

TEST(HttpClient, AServerThatSaysNothingMeetsTheDeadline) {
  const sys::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(silent.get(), 1), 0);  // the kernel takes the connection and no program reads
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size);
  Client client({.host = "127.0.0.1", .port = ntohs(address.sin_port), .secure = false});
  const auto got = client.send({}, 100ms);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
}

// A second attempt would need the time a second time, and load a server that is exhausted.
TEST(HttpClient, AKeptConnectionThatSaysNothingMeetsTheDeadlineOnce) {
  const sys::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::thread server([&] {  // answers once, and keeps the connection
    const sys::UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> text{};
    (void)::recv(peer.get(), text.data(), text.size(), 0);
    constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    ::send(peer.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    while (::recv(peer.get(), text.data(), text.size(), 0) > 0) {
    }
  });
  {
    Client client({.host = "127.0.0.1", .port = ntohs(address.sin_port), .secure = false});
    ASSERT_TRUE(client.send({}, 20000ms).ok());
    const auto late = client.send({}, 200ms);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code(), Errc::Timeout);
    pollfd second{listener.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&second, 1, 100), 0) << "it connected again";
  }
  server.join();
}

TEST(HttpClient, AStreamIsGivenPieceByPieceUntilEnoughWasSeen) {
  ScriptedServer server(
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n"});
  Client client(server.endpoint());
  std::string seen;
  const auto got = client.stream(
      {},
      [&](std::string_view piece) {
        seen += piece;
        return seen.size() < 6;
      },
      20000ms, 20000ms);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(seen, "onetwo");
}

// What a download is: the head first, then the body, of any size.
struct CollectingReceiver {
  std::vector<int> heads;
  std::string body;
  Client::Receiver receiver() {
    return {.head =
                [this](const Response& head) {
                  heads.push_back(head.status);
                  return Status();
                },
            .piece =
                [this](std::string_view piece) {
                  body += piece;
                  return Status();
                }};
  }
};

TEST(HttpClient, ReceivesABodyThatIsLargerThanAnAnswerMayBe) {
  const std::string body(9 << 20, 'x');
  ScriptedServer server(
      {"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body});
  CollectingReceiver received;
  const auto got = Client(server.endpoint())
                       .receive({}, received.receiver(), {.stall = 20000ms, .bytes = body.size()});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(received.heads, std::vector{200});
  EXPECT_EQ(received.body.size(), body.size());
  EXPECT_EQ(got->body, "");
}

TEST(HttpClient, ReceivesNoMoreThanItsLimit) {
  ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'x'),
                         "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nx"});
  for (int i = 0; i < 2; ++i) {
    CollectingReceiver received;
    const auto got =
        Client(server.endpoint()).receive({}, received.receiver(), {.stall = 20000ms, .bytes = 99});
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code(), Errc::TooLarge);
    EXPECT_LE(received.body.size(), 99U);
  }
}

TEST(HttpClient, ReceivesNothingOfARefusal) {
  ScriptedServer server({"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
                         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"});
  CollectingReceiver received;
  const Client::ReceiveLimits limits{.stall = 20000ms, .bytes = 99};
  Client client(server.endpoint());
  const auto refused = client.receive({}, received.receiver(), limits);
  ASSERT_TRUE(refused.ok()) << refused.error().text();
  EXPECT_EQ(refused->status, 404);
  EXPECT_EQ(refused->body, "none");
  EXPECT_TRUE(received.heads.empty());
  const auto cut = client.receive({}, received.receiver(), limits);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Errc::Corrupt);
  EXPECT_EQ(received.body, "ab");
}

TEST(HttpClient, AReceiverCanEndIt) {
  ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"});
  const auto got =
      Client(server.endpoint())
          .receive({},
                   {.head = [](const Response&) { return Status(Error(Errc::Denied, "no")); },
                    .piece = [](std::string_view) { return Status(); }},
                   {.stall = 20000ms, .bytes = 99});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Denied);
}

TEST(HttpClient, ATokenCannotSmuggleALine) {
  Client client({.host = "127.0.0.1", .port = 1, .secure = false});
  const auto got = client.send({.headers = {{"Authorization", "Bearer x\r\nEvil: 1"}}}, 100ms);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Invalid);
}

TEST(HttpClient, AMissingServerIsReported) {
  Client client({.host = "127.0.0.1", .port = 1, .secure = false});
  const auto got = client.send({}, 1000ms);
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(got.error().text(), HasSubstr("127.0.0.1:1"));
}

TEST(HttpUrl, IsTakenApart) {
  const auto url = parse_url("https://10.0.0.1:6443/k8s/clusters/c-1/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->endpoint.host, "10.0.0.1");
  EXPECT_EQ(url->endpoint.port, 6443);
  EXPECT_EQ(url->prefix, "/k8s/clusters/c-1");
  EXPECT_EQ(parse_url("https://[::1]:1234")->endpoint.host, "::1");
  EXPECT_EQ(parse_url("http://host")->endpoint.port, 80);
  for (const auto* bad : {"ftp://x", "https://", "https://x:0", "https://x:99999", "https://[::1"})
    EXPECT_FALSE(parse_url(bad).ok()) << bad;
}

}  // namespace
}  // namespace gantry::http
