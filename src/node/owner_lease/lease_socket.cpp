// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/lease_socket.hpp"

#include "base/core/clock.hpp"
#include "node/owner_lease/protocol.hpp"
#include "sharing/daemon/unix_address.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::owner_lease {
namespace {

Result<sys::UniqueFd> lease_socket() {
  sys::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Error::sys(errno, "socket");
  return fd;
}

bool is_allowed(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

Result<sys::UniqueFd> listen(const std::string& path) {
  const auto beside = fmt::format("{}.{}", path, ::getpid());
  GANTRY_TRY(const auto address, daemon::unix_address(beside));
  GANTRY_TRY(auto listener, lease_socket());
  ::unlink(beside.c_str());
  ::fchmod(listener.get(), 0600);
  if (::bind(listener.get(), address.get(), sizeof address.address) != 0 ||
      ::listen(listener.get(), 8) != 0)
    return Error::sys(errno, fmt::format("listen {}", beside));
  if (::chmod(beside.c_str(), 0600) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int err = errno;
    ::unlink(beside.c_str());
    return Error::sys(err, fmt::format("rename {} to {}", beside, path));
  }
  return listener;
}

std::optional<sys::UniqueFd> accept(int listener) {
  sys::UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || !is_allowed(fd.get())) return std::nullopt;
  return fd;
}

Result<sys::UniqueFd> connect(const std::string& path) {
  const auto address = daemon::unix_address(path);
  if (!address.ok()) return address.error();
  GANTRY_TRY(auto fd, lease_socket());
  if (::connect(fd.get(), address->get(), sizeof address->address) == 0) return fd;
  if (errno == ECONNREFUSED)
    return Error(Errc::NotFound, fmt::format("no agent listens on {}", path));
  return Error::sys(errno, fmt::format("connect {}", path));
}

Status send(int socket, std::string_view message) {
  if (::send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0)
    return Error::sys(errno, "send");
  return {};
}

Result<std::optional<std::string>> receive(int socket) {
  std::array<char, kMaxMessage> buffer{};
  const auto got = ::recv(socket, buffer.data(), buffer.size(), MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<std::string>();
  if (got < 0 && errno == ECONNRESET) return Error(Errc::NotFound, "the connection was closed");
  if (got < 0) return Error::sys(errno, "recv");
  if (got == 0) return Error(Errc::NotFound, "the connection was closed");
  if (static_cast<std::size_t>(got) > buffer.size())
    return Error(Errc::Corrupt, "a message is too long");
  return std::optional(std::string(buffer.data(), static_cast<std::size_t>(got)));
}

Result<std::string> receive(int socket, std::chrono::milliseconds at_most) {
  for (const auto until = Clock::now() + at_most;;) {
    GANTRY_TRY(auto message, receive(socket));
    if (message) return *std::move(message);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return Error(Errc::Timeout, "no answer in time");
    pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min<long long>(left, 1 << 30)));
    if (ready < 0 && errno != EINTR) return Error::sys(errno, "poll");
  }
}

}  // namespace gantry::owner_lease
