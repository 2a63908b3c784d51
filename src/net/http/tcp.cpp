// SPDX-License-Identifier: Apache-2.0
#include "base/sys/unique_fd.hpp"
#include "net/http/connection_internal.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::http {
namespace {

Status wait_for(int fd, short events, Deadline deadline, int cancel) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    std::array<pollfd, 2> polled{{{.fd = fd, .events = events, .revents = 0},
                                  {.fd = cancel, .events = POLLIN, .revents = 0}}};
    const int ready =
        ::poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready > 0 && polled[1].revents != 0) return Error(Errc::Timeout, "asked to stop");
    if (ready > 0) return {};
    if (ready == 0) return Error(Errc::Timeout, "no answer in time");
    if (errno != EINTR) return Error::sys(errno, "poll");
  }
}

class Tcp : public Connection {
 public:
  Tcp(sys::UniqueFd socket, int cancel) : socket_(std::move(socket)), cancel_(cancel) {}

  Status write(std::string_view bytes, Deadline deadline) override {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        GANTRY_CHECK(wait_for(socket_.get(), POLLOUT, deadline, cancel_));
      } else if (errno != EINTR) {
        return Error::sys(errno, "send");
      }
    }
    return {};
  }

  Result<std::string> read(Deadline deadline) override {
    std::array<char, 16384> buffer{};
    while (true) {
      const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got >= 0) return std::string(buffer.data(), static_cast<std::size_t>(got));
      if (errno == EAGAIN) {
        GANTRY_CHECK(wait_for(socket_.get(), POLLIN, deadline, cancel_));
      } else if (errno != EINTR) {
        return Error::sys(errno, "recv");
      }
    }
  }

  bool is_idle() const override {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  sys::UniqueFd socket_;
  int cancel_;
};

// A peer that vanished without a word (its machine is off) is noticed in half a minute, also by who
// only listens.
void notice_death(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Result<sys::UniqueFd> connect_to(const addrinfo& address, Deadline deadline, int cancel) {
  sys::UniqueFd socket(::socket(
      address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!socket.valid()) return Error::sys(errno, "socket");
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  notice_death(socket.get());
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return Error::sys(errno, "connect");
  GANTRY_CHECK(wait_for(socket.get(), POLLOUT, deadline, cancel));
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return Error::sys(error, "connect");
  return socket;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

Result<std::unique_ptr<addrinfo, FreeAddresses>> addresses_of(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error =
      ::getaddrinfo(endpoint.host.c_str(), fmt::to_string(endpoint.port).c_str(), &hints, &list);
  if (error != 0)
    return Error(Errc::NotFound, fmt::format("{}: {}", endpoint.host, ::gai_strerror(error)));
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

}  // namespace

Result<std::unique_ptr<Connection>> connect(const Endpoint& endpoint, Deadline deadline,
                                            int cancel) {
  const auto where = fmt::format("{}:{}", endpoint.host, endpoint.port);
  GANTRY_TRY(const auto list, addresses_of(endpoint));
  Error last(Errc::NotFound, "no address");
  for (const auto* address = list.get(); address != nullptr; address = address->ai_next) {
    auto socket = connect_to(*address, deadline, cancel);
    if (!socket.ok()) {
      last = std::move(socket).error();
      continue;
    }
    std::unique_ptr<Connection> plain = std::make_unique<Tcp>(*std::move(socket), cancel);
    if (!endpoint.secure) return plain;
    return with_tls(std::move(plain), endpoint, deadline).in(where);
  }
  return std::move(last).in(where);
}

}  // namespace gantry::http
