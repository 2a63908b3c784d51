// SPDX-License-Identifier: Apache-2.0
#include "base/sys/socket_wait.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::sys {
namespace {

Error asked_to_stop() {
  return {Errc::Timeout, "asked to stop"};
}

Error no_answer_in_time() {
  return {Errc::Timeout, "no answer in time"};
}

// Without waiting: a peer that sends without a pause never makes us wait.
Status check_not_over(const WaitLimit& patience) {
  if (patience.cancel >= 0 && is_readable(patience.cancel)) return asked_to_stop();
  if (Clock::now() >= patience.deadline) return no_answer_in_time();
  return {};
}

}  // namespace

Status wait_for(int fd, short events, const WaitLimit& patience) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(patience.deadline - Clock::now()).count();
    std::array<pollfd, 2> polled{{{.fd = fd, .events = events, .revents = 0},
                                  {.fd = patience.cancel, .events = POLLIN, .revents = 0}}};
    const int ready = ::poll(polled.data(), polled.size(),
                             static_cast<int>(std::clamp<long long>(left, 0, 1 << 30)));
    if (ready > 0 && polled[1].revents != 0) return asked_to_stop();
    if (ready > 0) return {};
    if (ready == 0 && left <= 0) return no_answer_in_time();
    if (ready < 0 && errno != EINTR) return Error::sys(errno, "poll");
  }
}

bool is_readable(int fd) {
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) > 0;
}

Result<UniqueFd> connect_stream(const sockaddr* address, socklen_t size,
                                const WaitLimit& patience) {
  UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  if (::connect(socket.get(), address, size) == 0) return socket;
  if (errno != EINPROGRESS) return Error::sys(errno, "connect");
  GANTRY_CHECK(wait_for(socket.get(), POLLOUT, patience));
  int error = 0;
  socklen_t error_size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
  if (error != 0) return Error::sys(error, "connect");
  return socket;
}

Status send_all(int fd, std::string_view bytes, const WaitLimit& patience) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      GANTRY_CHECK(wait_for(fd, POLLOUT, patience));
    } else if (errno != EINTR) {
      return Error::sys(errno, "send");
    }
  }
  return {};
}

Result<std::size_t> receive(int fd, std::span<char> buffer, const WaitLimit& patience) {
  while (true) {
    GANTRY_CHECK(check_not_over(patience));
    const auto got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) {
      GANTRY_CHECK(wait_for(fd, POLLIN, patience));
    } else if (errno != EINTR) {
      return Error::sys(errno, "recv");
    }
  }
}

}  // namespace gantry::sys
