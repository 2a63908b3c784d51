// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the server.
#pragma once

#include "base/sys/unique_fd.hpp"
#include "net/http/client.hpp"
#include "net/http/server.hpp"
#include "support/eventually.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gantry::http {

using test::eventually;

using namespace std::chrono_literals;

inline Response ok_response(std::string text) {
  return {.status = 200, .headers = {}, .body = std::move(text)};
}

inline std::string get(std::string_view path) {
  return fmt::format("GET {} HTTP/1.1\r\n\r\n", path);
}
inline std::string get_and_close(std::string_view path) {
  return fmt::format("GET {} HTTP/1.1\r\nConnection: close\r\n\r\n", path);
}
inline std::string post(std::string_view path, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body);
}

// Handlers wait here until the test opens it.
class Latch {
 public:
  void wait() {
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
  bool await_waiting(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return waiting_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

// A client that sends any bytes. `from`: its address, one of 127.0.0.0/8.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, const char* from = "127.0.0.1", int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &address.sin_addr);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view text) const {
    (void)::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // As much as the socket takes. False: the server has closed.
  bool send_at_once(std::string_view text) const {
    const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent >= 0 || errno == EAGAIN;
  }
  void read_at_once() const {
    std::array<char, 65536> buffer{};
    while (::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) {
    }
  }
  // Until `part` came or the server closed; a minute at most.
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
  void close() { socket_.reset(); }

 private:
  sys::UniqueFd socket_;
};

inline std::unique_ptr<Server> start_server(ServerOptions options, std::vector<Route> routes) {
  options.address = {.host = "127.0.0.1", .port = 0};
  auto started = Server::start(options, std::move(routes));
  EXPECT_TRUE(started.ok()) << started.error().text();
  return *std::move(started);
}

inline Client client_of(const Server& server) {
  return Client({.host = "127.0.0.1", .port = server.port(), .secure = false});
}

// A server with the handlers that most tests need.
class ServerTest : public testing::Test {
 protected:
  static constexpr std::size_t kLarge = std::size_t{32} << 20;  // more than sockets take

  std::vector<Route> routes() {
    return {
        {"GET", "/healthz", [](const Request&) { return ok_response("ok"); }},
        {"GET", "/page", [](const Request&) { return ok_response(std::string(200'000, 'm')); }},
        {"GET", "/large", [](const Request&) { return ok_response(std::string(kLarge, 'z')); }},
        {"GET", "/inspect/*", [](const Request& request) { return ok_response(request.target); }},
        {"POST", "/echo", [](const Request& request) { return ok_response(request.body); }},
        {"POST", "/wait",
         [this](const Request&) {
           latch.wait();
           return ok_response("waited");
         }},
        {"POST", "/throw", [](const Request&) -> Response { throw std::runtime_error("oh"); }},
    };
  }
  std::unique_ptr<Server> start(const ServerOptions& options = {}) {
    return start_server(options, routes());
  }

  Latch latch;
};

}  // namespace gantry::http
