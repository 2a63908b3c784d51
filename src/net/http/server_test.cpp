// SPDX-License-Identifier: Apache-2.0
#include "net/http/server.hpp"

#include "net/http/client.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace gantry::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class HttpServer : public testing::Test {
 protected:
  HttpServer() : loop_(*sys::Loop::make()), server_(*Server::listen(*loop_, {"127.0.0.1", 0})) {
    server_->page("/metrics", [] { return Response{.body = std::string(200'000, 'm')}; });
    server_->page("/healthz", [] { return Response{.body = "ok"}; });
    server_->page_later("/later", [this](Server::Answer answer) {
      kept_ = std::move(answer);
      late_ = loop_->after(50ms, [this] { delivered_ = kept_({.body = "late"}); });
    });
    thread_ = std::thread([this] { EXPECT_TRUE(loop_->run().ok()); });
  }
  ~HttpServer() override {
    loop_->stop();
    thread_.join();
  }

  Result<Response> ask(const Request& request) {
    Client client({.host = "127.0.0.1", .port = server_->port(), .secure = false});
    return client.send(request, 5000ms);
  }

  sys::UniqueFd connect() const {
    sys::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  // What comes back for these bytes, until the server closes or a second passes.
  std::string raw(const std::string& bytes) {
    const sys::UniqueFd socket = connect();
    const timeval second{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string all;
    std::string buffer(4096, '\0');
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (got > 0) all.append(buffer, 0, static_cast<std::size_t>(got));
    }
    return all;
  }

  std::unique_ptr<sys::Loop> loop_;
  std::unique_ptr<Server> server_;
  Server::Answer kept_;
  sys::Loop::Timer late_;
  std::atomic<int> delivered_ = -1;
  std::thread thread_;
};

TEST_F(HttpServer, GivesAPageWhole) {
  const auto got = ask({.target = "/metrics?name=x"});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body.size(), 200'000U);
}

TEST_F(HttpServer, KeepsTheConnectionForTheNextScrape) {
  Client client({.host = "127.0.0.1", .port = server_->port(), .secure = false});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.send({.target = "/metrics"}, 5000ms)->status, 200);
}

TEST_F(HttpServer, OtherPathsAreNotHereAndItSaysWhatIs) {
  const auto got = ask({.target = "/other"});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->status, 404);
  EXPECT_THAT(got->body, HasSubstr("/metrics"));
}

TEST_F(HttpServer, OnlyReadsAreAnswered) {
  EXPECT_EQ(ask({.method = "POST", .target = "/metrics", .body = "x"})->status, 405);
  EXPECT_EQ(ask({.method = "HEAD", .target = "/metrics"})->body, "");
}

TEST_F(HttpServer, WhatIsNoRequestIsRefused) {
  EXPECT_THAT(raw("\x16\x03\x01 TLS?\r\n\r\n"), HasSubstr("400"));
  EXPECT_THAT(raw(std::string(20'000, 'a')), HasSubstr("431"));
}

TEST_F(HttpServer, ConnectionsThatSomebodyHoldsKeepNobodyOut) {
  constexpr std::size_t kMany = 100;
  std::vector<sys::UniqueFd> held;
  held.reserve(kMany);
  while (held.size() < kMany) held.push_back(connect());
  const auto got = ask({.target = "/metrics"});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->status, 200);
}

TEST_F(HttpServer, APageMayAnswerLaterWhileOthersAreServed) {
  std::thread waiting([&] { EXPECT_EQ(ask({.target = "/later"})->body, "late"); });
  EXPECT_EQ(ask({.target = "/metrics"})->status, 200);
  waiting.join();
  while (delivered_ == -1) std::this_thread::yield();
  EXPECT_EQ(delivered_, 1);
  EXPECT_FALSE(kept_({.body = "again"})) << "an answer is given once";
}

TEST_F(HttpServer, APageLearnsThatNobodyWaitsAnyMore) {
  {
    const sys::UniqueFd socket = connect();
    const std::string_view request = "GET /later HTTP/1.1\r\n\r\n";
    ASSERT_GT(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    std::this_thread::sleep_for(10ms);
  }
  for (int i = 0; i < 500 && delivered_ == -1; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(delivered_, 0);
}

// The server used to read 4 KiB per wake-up and answer one request of them: the rest stayed in its
// buffer, unanswered, and every further packet made the buffer larger.
TEST_F(HttpServer, AnswersEveryRequestOfAPipeline) {
  constexpr std::size_t kRequests = 2000;
  std::string requests;
  for (std::size_t i = 0; i < kRequests; ++i) requests += "GET /healthz HTTP/1.1\r\n\r\n";
  requests += "GET /last HTTP/1.1\r\nConnection: close\r\n\r\n";
  const auto answers = raw(requests);
  std::size_t found = 0;
  for (auto at = answers.find("HTTP/1.1 200"); at != std::string::npos;
       at = answers.find("HTTP/1.1 200", at + 1))
    ++found;
  EXPECT_EQ(found, kRequests);
  EXPECT_THAT(answers, HasSubstr("HTTP/1.1 404"));
}

TEST_F(HttpServer, AnswersAPipelineInOrderWhenAPageAnswersLater) {
  const auto answers =
      raw("GET /later HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"
          "GET /last HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_LT(answers.find("late"), answers.find("ok"));
  EXPECT_LT(answers.find("ok"), answers.find("404"));
}

// A pod of an IPv6 cluster has no other address, and its probes come that way.
TEST(HttpAddress, AllAddressesAreThoseOfIpv6Too) {
  const auto loop = *sys::Loop::make();
  const auto server = *Server::listen(*loop, {"", 0});
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
  const sys::UniqueFd four(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(four.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

TEST(HttpAddress, IsTakenApart) {
  EXPECT_EQ(parse_address(":9400")->port, 9400);
  EXPECT_EQ(parse_address("[::1]:80")->host, "::1");
  for (const auto* bad : {"", "9400", "a:b", "x:70000"}) EXPECT_FALSE(parse_address(bad).ok());
}

}  // namespace
}  // namespace gantry::http
