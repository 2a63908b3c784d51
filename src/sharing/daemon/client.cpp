// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/client.hpp"

#include "sharing/daemon/control_socket.hpp"
#include "sharing/daemon/log_file.hpp"
#include "sharing/daemon/protocol.hpp"
#include "sharing/daemon/start_detached.hpp"
#include "sharing/daemon/unix_address.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

namespace gantry::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kStartWithin = 10s;
constexpr auto kLookEvery = 5ms;

}  // namespace

Result<Client> Client::connect(const sys::Host& host) {
  const auto path = host.outside(kControlSocket);
  GANTRY_TRY(const auto place, unix_address(path));
  sys::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  if (::connect(socket.get(), place.get(), sizeof place.address) == 0)
    return Client(std::move(socket));
  const int error = errno;
  if (error == ENOENT || error == ECONNREFUSED)
    return Error(
        Errc::NotFound,
        fmt::format(
            "{}: the share daemon is not running on this machine; `gantry share serve` starts it",
            path));
  if (error == EACCES || error == EPERM)
    return Error(Errc::Denied, fmt::format("{}: the shares of this machine belong to another user, "
                                           "usually root; run the command with sudo",
                                           path));
  return Error::sys(error, "connect").in(path);
}

Result<Client> Client::connect_or_start(const sys::Host& host,
                                        const std::vector<std::string>& program) {
  auto client = connect_to_ready(host);
  if (client.ok() || client.error().code() != Errc::NotFound) return client;
  auto argv = program;
  argv.insert(argv.end(), {"--root", host.root(), std::string(kUntilIdle)});
  const auto log = host.outside(kLogPath);
  GANTRY_TRY(const auto begin, start_detached(argv, log).in("starting the share daemon"));
  // A second daemon ends at once; then the first one answers, perhaps a little later.
  const auto until = Clock::now() + kStartWithin;
  while (Clock::now() < until) {
    client = connect_to_ready(host);
    if (client.ok() || client.error().code() != Errc::NotFound) return client;
    std::this_thread::sleep_for(kLookEvery);
  }
  return Error(Errc::Timeout, fmt::format("the share daemon did not start within {} s: {}",
                                          kStartWithin.count(), log_tail(log, begin)));
}

// A daemon that is shutting down accepts connections but does not answer: NotFound. A daemon that
// has answered keeps running while we are connected.
Result<Client> Client::connect_to_ready(const sys::Host& host) {
  GANTRY_TRY(auto client, connect(host));
  if (client.list().ok()) return client;
  return Error(Errc::NotFound, "the share daemon does not answer");
}

Status Client::send(std::string_view line) {
  while (!line.empty()) {
    const auto sent = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Error::sys(errno, "send").in("asking the share daemon");
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string> Client::read_line() {
  const auto until = Clock::now() + timeout_;
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      auto line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0)
      return Error(Errc::Timeout,
                   fmt::format("the share daemon did not answer within {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(timeout_).count()));
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 16'384> piece{};
    const auto got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "recv").in("asking the share daemon");
    if (got == 0) return Error(Errc::Internal, "the share daemon ended before it answered");
    received_.append(piece.data(), static_cast<std::size_t>(got));
    if (received_.size() > kMaxResponseBytes)
      return Error(Errc::Corrupt, "the share daemon's answer is too long");
  }
}

Result<std::string> Client::ask(std::string_view question) {
  GANTRY_CHECK(send(std::string(question) + '\n'));
  return read_line();
}

Result<ShareState> Client::request_state(std::string_view question) {
  GANTRY_TRY(const auto line, ask(question));
  GANTRY_TRY(auto shares, parse_response(line));
  if (shares.size() != 1) return Error(Errc::Corrupt, "the share daemon's answer has no share");
  return std::move(shares.front());
}

Result<ShareState> Client::create(const policy::Share& share, policy::Overcommit overcommit) {
  return request_state(
      to_line({.ask = RequestKind::Create, .share = share, .overcommit = overcommit}));
}

Result<ShareState> Client::hold(const policy::Share& share, policy::Overcommit overcommit) {
  return request_state(
      to_line({.ask = RequestKind::Hold, .share = share, .overcommit = overcommit}));
}

Status Client::adopt(std::string_view name, pid_t pid) {
  GANTRY_TRY(const auto line,
             ask(to_line({.ask = RequestKind::Adopt, .name = std::string(name), .pid = pid})));
  GANTRY_CHECK(parse_response(line));
  return {};
}

Status Client::remove(std::string_view name) {
  GANTRY_TRY(const auto line,
             ask(to_line({.ask = RequestKind::Remove, .name = std::string(name)})));
  GANTRY_CHECK(parse_response(line));
  return {};
}

Result<ShareState> Client::set(std::string_view name, const policy::ShareText& changes,
                               policy::Overcommit overcommit) {
  return request_state(to_line({.ask = RequestKind::Set,
                                .name = std::string(name),
                                .changes = changes,
                                .overcommit = overcommit}));
}

Result<ShareState> Client::show(std::string_view name) {
  return request_state(to_line({.ask = RequestKind::Show, .name = std::string(name)}));
}

Result<std::vector<ShareState>> Client::list() {
  GANTRY_TRY(const auto line, ask(to_line({.ask = RequestKind::List})));
  return parse_response(line);
}

}  // namespace gantry::daemon
