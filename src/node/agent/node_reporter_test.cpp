// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_reporter.hpp"

#include "base/sys/unique_fd.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

// An API server that lets nobody write a node, and takes events.
class NarrowServer {
 public:
  NarrowServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~NarrowServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  int port() const { return port_; }
  int events() const { return events_; }

 private:
  void serve() {
    while (true) {
      const sys::UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) return;
      std::array<char, 65536> buffer{};
      const auto got = ::recv(peer.get(), buffer.data(), buffer.size(), 0);
      const std::string_view request(buffer.data(),
                                     static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      const bool event = request.starts_with("POST ");
      if (event) ++events_;
      const std::string answer =
          fmt::format("HTTP/1.1 {}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}",
                      event ? "201 Created" : "403 Forbidden");
      ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  sys::UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> events_ = 0;
  std::thread thread_;
};

TEST(NodeReporter, WhatIsRefusedKeepsNothingElseBack) {
  const NarrowServer server;
  kube::ClientConfig access;
  access.server = *http::parse_url(fmt::format("http://127.0.0.1:{}", server.port()));
  NodeReporter reporter(access, {.node = "n"}, Log(LogForm::Klog, 0, [](std::string_view) {}));
  reporter.labels({{"nvidia.com/gpu.count", "8"}});
  reporter.health({}, 1);
  reporter.event({.gpu = {"GPU-1"}, .text = "ill", .at_unix_s = 1});
  for (int i = 0; i < 500 && server.events() == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(server.events(), 1);
}

}  // namespace
}  // namespace gantry::agent
