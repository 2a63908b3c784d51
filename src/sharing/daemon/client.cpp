// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/client.hpp"

#include "base/core/clock.hpp"
#include "sharing/daemon/control_socket.hpp"
#include "sharing/daemon/heartbeat.hpp"
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

using namespace std::chrono_literals;

constexpr auto kStartWithin = 10s;
constexpr auto kLookEvery = 5ms;
constexpr std::chrono::milliseconds kDriverStartsWithin = 60s;  // a new share needs the driver

Error connect_error(int error, const std::string& path) {
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

Error hung_daemon(pid_t pid) {
  if (pid == 0) return Error(Errc::Timeout, "the share daemon hangs: it does not answer");
  return Error(Errc::Timeout, fmt::format("the share daemon (pid {}) {}", pid, describe_hang(pid)))
      .advise(fmt::format("run `kill -9 {}`: the shares stay, and the next `gantry share` command "
                          "starts another daemon",
                          pid));
}

}  // namespace

// Never blocks in connect(): a daemon that hangs does not accept, and its backlog may be full.
Result<Client> Client::connect(const sys::Host& host, std::chrono::milliseconds patience) {
  const auto path = host.outside(kControlSocket);
  const auto until = Clock::now() + patience;
  GANTRY_TRY(const auto place, unix_address(path));
  for (;;) {
    sys::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return Error::sys(errno, "socket");
    if (::connect(socket.get(), place.get(), sizeof place.address) == 0)
      return Client(std::move(socket));
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN) return connect_error(error, path);
    if (Clock::now() >= until) {
      const auto heartbeat = read_heartbeat(host);
      return hung_daemon(heartbeat ? heartbeat->process.pid : 0);
    }
    std::this_thread::sleep_for(kLookEvery);
  }
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
Result<Client> Client::connect_to_ready(const sys::Host& host, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  GANTRY_TRY(auto client, connect(host, patience));
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  const auto answer = client.ask(to_line({.ask = RequestKind::List}), left);
  if (answer.ok()) return client;
  if (answer.error().code() == Errc::Timeout) return answer.error();
  return Error(Errc::NotFound, "the share daemon does not answer");
}

pid_t Client::daemon_pid() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

Error Client::hung() const {
  return hung_daemon(daemon_pid());
}

Status Client::wait_for(short events, Deadline until) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return hung();
    pollfd wait{socket_.get(), events, 0};
    if (::poll(&wait, 1, static_cast<int>(left.count())) > 0) return {};
  }
}

Status Client::send(std::string_view line, Deadline until) {
  while (!line.empty()) {
    const auto sent = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      GANTRY_CHECK(wait_for(POLLOUT, until));
      continue;
    }
    if (sent < 0) return Error::sys(errno, "send").in("asking the share daemon");
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string> Client::read_line(Deadline until) {
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      auto line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    GANTRY_CHECK(wait_for(POLLIN, until));
    std::array<char, 16'384> piece{};
    const auto got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Error::sys(errno, "recv").in("asking the share daemon");
    if (got == 0) return Error(Errc::Internal, "the share daemon ended before it answered");
    received_.append(piece.data(), static_cast<std::size_t>(got));
    if (received_.size() > kMaxResponseBytes)
      return Error(Errc::Corrupt, "the share daemon's answer is too long");
  }
}

Result<std::string> Client::ask(std::string_view question, std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  GANTRY_CHECK(send(std::string(question) + '\n', until));
  return read_line(until);
}

Result<ShareState> Client::request_state(std::string_view question,
                                         std::chrono::milliseconds timeout) {
  GANTRY_TRY(const auto line, ask(question, timeout));
  GANTRY_TRY(auto shares, parse_response(line));
  if (shares.size() != 1) return Error(Errc::Corrupt, "the share daemon's answer has no share");
  return std::move(shares.front());
}

Result<ShareState> Client::create(const policy::Share& share, policy::Overcommit overcommit) {
  return request_state(
      to_line({.ask = RequestKind::Create, .share = share, .overcommit = overcommit}),
      kDriverStartsWithin);
}

Result<ShareState> Client::hold(const policy::Share& share, policy::Overcommit overcommit) {
  return request_state(
      to_line({.ask = RequestKind::Hold, .share = share, .overcommit = overcommit}),
      kDriverStartsWithin);
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

Status Client::release_driver() {
  GANTRY_TRY(const auto line, ask(to_line({.ask = RequestKind::Release})));
  GANTRY_CHECK(parse_response(line));
  return {};
}

Result<ShareState> Client::set(std::string_view name, const policy::ShareChanges& changes,
                               policy::Overcommit overcommit) {
  return request_state(to_line({.ask = RequestKind::Set,
                                .name = std::string(name),
                                .changes = changes,
                                .overcommit = overcommit}),
                       timeout_);
}

Result<ShareState> Client::show(std::string_view name) {
  return request_state(to_line({.ask = RequestKind::Show, .name = std::string(name)}), timeout_);
}

Result<std::vector<ShareState>> Client::list() {
  GANTRY_TRY(const auto line, ask(to_line({.ask = RequestKind::List})));
  return parse_response(line);
}

}  // namespace gantry::daemon
