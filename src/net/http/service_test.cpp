// SPDX-License-Identifier: Apache-2.0
#include "net/http/service.hpp"

#include "base/sys/unique_fd.hpp"
#include "net/http/client.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace gantry::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

Response say(std::string text) {
  return {.status = 200, .headers = {}, .body = std::move(text)};
}

// Handlers that wait until the test lets them go on.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool await(int waiting) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return waiting_ >= waiting; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

class Raw {
 public:
  explicit Raw(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view text) const {
    (void)::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Until `part` came or the peer closed; a minute at most.
  std::string read_until(std::string_view part) const {
    std::string text;
    while (text.find(part) == std::string::npos || part.empty()) {
      pollfd poll{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&poll, 1, 60'000) <= 0) return text + " (nothing came)";
      std::array<char, 4096> buffer{};
      const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  std::string read_all() const { return read_until(""); }

 private:
  sys::UniqueFd socket_;
};

constexpr std::size_t kLarge = std::size_t{32} << 20;  // more than sockets take

class ServiceTest : public testing::Test {
 protected:
  std::vector<Service::Route> routes() {
    return {
        {"GET", "/healthz", [](const Request&) { return say("ok"); }},
        {"POST", "/echo", [](const Request& request) { return say(request.body); }},
        {"GET", "/inspect/*", [](const Request& request) { return say(request.target); }},
        {"POST", "/wait",
         [this](const Request&) {
           gate.pass();
           return say("waited");
         }},
        {"GET", "/large", [](const Request&) { return say(std::string(kLarge, 'z')); }},
        {"POST", "/throw", [](const Request&) -> Response { throw std::runtime_error("oh"); }},
    };
  }
  std::unique_ptr<Service> start(ServiceOptions options = {}) {
    options.address = {.host = "127.0.0.1", .port = 0};
    auto made = Service::start(options, routes());
    EXPECT_TRUE(made.ok()) << made.error().text();
    return *std::move(made);
  }
  static Client client(const Service& service) {
    return Client({.host = "127.0.0.1", .port = service.port(), .secure = false});
  }
  static std::string post(std::string_view path, std::string_view body) {
    return fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body);
  }

  Gate gate;
};

TEST_F(ServiceTest, AnswersByMethodAndPath) {
  const auto service = start();
  auto asks = client(*service);
  const auto ask = [&](const std::string& method, const std::string& target) {
    const auto got = asks.send({.method = method, .target = target}, 60s);
    return got.ok() ? fmt::format("{} {}", got->status, got->body) : got.error().text();
  };
  EXPECT_EQ(ask("GET", "/healthz"), "200 ok");
  EXPECT_EQ(ask("GET", "/healthz?verbose"), "200 ok");
  EXPECT_EQ(ask("HEAD", "/healthz"), "200 ");
  EXPECT_EQ(ask("GET", "/inspect/node-1"), "200 /inspect/node-1");
  EXPECT_THAT(ask("GET", "/inspect"), StartsWith("404"));
  EXPECT_THAT(ask("POST", "/healthz"), StartsWith("405"));
  EXPECT_THAT(ask("POST", "/throw"), StartsWith("500 oh"));
  EXPECT_EQ(service->counts().connections, 1U) << "one connection for all of them";
}

TEST_F(ServiceTest, TakesLargeBodiesUpToTheLimit) {
  const auto service = start();
  auto asks = client(*service);
  const std::string large(std::size_t{5} << 20, 'x');
  const auto got =
      asks.send({.method = "POST", .target = "/echo", .headers = {}, .body = large}, 60s);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->body.size(), large.size());

  const Raw raw(service->port());
  raw.send("POST /echo HTTP/1.1\r\nContent-Length: 16777217\r\n\r\nand some of it");
  EXPECT_THAT(raw.read_all(), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(service->counts().refused, 1U);
}

TEST_F(ServiceTest, TellsACallerToGoOnWithItsBody) {
  const auto service = start();
  const Raw raw(service->port());
  raw.send("POST /echo HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(raw.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.send("ab");
  EXPECT_THAT(raw.read_until("ab"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(ServiceTest, AnswersRequestsThatCameTogetherInTheirOrder) {
  const auto service = start();
  const Raw raw(service->port());
  raw.send(post("/echo", "one") + post("/echo", "two") +
           "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto all = raw.read_all();
  EXPECT_LT(all.find("one"), all.find("two"));
  EXPECT_LT(all.find("two"), all.find("ok"));
}

TEST_F(ServiceTest, ASlowSenderHoldsNobodyUpAndLosesItsTime) {
  const auto service = start({.threads = 1, .request = 300ms});
  std::vector<std::unique_ptr<Raw>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Raw>(service->port()));
    slow.back()->send("POST /echo HTTP/1.1\r\nContent-Length: 100\r\n\r\nx");
  }
  auto asks = client(*service);
  EXPECT_EQ(asks.send({.target = "/healthz"}, 60s)->body, "ok");
  EXPECT_THAT(slow[0]->read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(ServiceTest, ATrickleOfBytesDoesNotBuyTime) {
  const auto service = start({.request = 300ms});
  const Raw raw(service->port());
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

TEST_F(ServiceTest, ManyConnectionsMakeRoomForNewOnes) {
  const auto service = start({.connections = 4});
  std::vector<std::unique_ptr<Raw>> held;
  held.reserve(12);
  for (int i = 0; i < 12; ++i) held.push_back(std::make_unique<Raw>(service->port()));
  auto asks = client(*service);
  EXPECT_EQ(asks.send({.target = "/healthz"}, 60s)->body, "ok");
  EXPECT_LE(service->counts().connections, 4U);
}

TEST_F(ServiceTest, ConnectionsThatWaitForAnAnswerAreNotGivenAway) {
  const auto service = start({.threads = 2, .connections = 2});
  const Raw first(service->port());
  const Raw second(service->port());
  first.send(post("/wait", ""));
  second.send(post("/wait", ""));
  ASSERT_TRUE(gate.await(2));
  const Raw third(service->port());
  EXPECT_EQ(third.read_all(), "");  // closed
  gate.open();
  EXPECT_THAT(first.read_until("waited"), HasSubstr("waited"));
  EXPECT_THAT(second.read_until("waited"), HasSubstr("waited"));
}

TEST_F(ServiceTest, MoreThanCanWaitIsToldSo) {
  const auto service = start({.threads = 1, .waiting = 1});
  const Raw first(service->port());
  first.send(post("/wait", ""));
  ASSERT_TRUE(gate.await(1));
  const Raw second(service->port());
  second.send(post("/wait", ""));
  while (service->counts().requests < 2) std::this_thread::sleep_for(1ms);
  const Raw third(service->port());
  third.send(post("/wait", ""));
  EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 503 "));
  gate.open();
}

TEST_F(ServiceTest, BodiesTogetherAreBounded) {
  const auto service = start({.memory_limit = 1000});
  const Raw first(service->port());
  first.send("POST /echo HTTP/1.1\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(first.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const Raw second(service->port());
  second.send("POST /echo HTTP/1.1\r\nContent-Length: 900\r\n\r\n" + std::string(199, 'x'));
  EXPECT_THAT(second.read_all(), StartsWith("HTTP/1.1 503 "));
  first.send(std::string(900, 'y'));
  EXPECT_THAT(first.read_until("yyy"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServiceTest, AnswersThatNobodyReadsAreBounded) {
  const auto service = start({.memory_limit = kLarge + kLarge / 4});
  const std::string ask = "GET /large HTTP/1.1\r\nConnection: close\r\n\r\n";
  const Raw first(service->port());
  first.send(ask);
  const auto head = first.read_until("\r\n\r\n");
  const Raw second(service->port());
  second.send(ask);
  EXPECT_LT(second.read_all().size(), kLarge);
  EXPECT_GT(head.size() + first.read_all().size(), kLarge);
}

TEST_F(ServiceTest, WhoAnnouncesMuchAndSendsNothingKeepsNobodyOut) {
  const auto service = start({.memory_limit = 1000});
  const Raw large(service->port());
  large.send("POST /echo HTTP/1.1\r\nContent-Length: 600\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(large.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const Raw other(service->port());
  other.send("POST /echo HTTP/1.1\r\nContent-Length: 400\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(other.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  const Raw small(service->port());
  small.send("POST /echo HTTP/1.1\r\nContent-Length: 200\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(small.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  small.send(std::string(200, 'x'));
  EXPECT_THAT(small.read_until("xxx"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(large.read_all(), "") << "closed";
  other.send(std::string(400, 'y'));
  EXPECT_THAT(other.read_until("yyy"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServiceTest, EndsWithTheAnswersThatAreUnderWay) {
  auto service = start();
  const Raw idle(service->port());
  const Raw asks(service->port());
  asks.send(post("/wait", ""));
  ASSERT_TRUE(gate.await(1));
  std::thread ends([&] { service.reset(); });
  EXPECT_EQ(idle.read_all(), "");
  gate.open();
  const auto answer = asks.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  ends.join();
}

TEST_F(ServiceTest, ManyClientsAtOnceGetTheirOwnAnswers) {
  const auto service = start({.threads = 4});
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  threads.reserve(8);
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      auto asks = client(*service);
      for (int i = 0; i < 50; ++i) {
        const auto body = fmt::format("{}-{}", number, i);
        const auto got =
            asks.send({.method = "POST", .target = "/echo", .headers = {}, .body = body}, 60s);
        right += got.ok() && got->body == body ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
  EXPECT_EQ(service->counts().requests, 400U);
}

TEST_F(ServiceTest, AKeyThatIsNoneIsRefusedBeforeAnythingListens) {
  const ServerIdentity identity{.certificates = "no", .key = "no"};
  const auto made =
      Service::start({.address = {.host = "127.0.0.1", .port = 0}, .identity = &identity}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Errc::Invalid);
}

}  // namespace
}  // namespace gantry::http
