// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/hook/register_with_share_daemon.hpp"

#include "base/json/document.hpp"
#include "base/sys/open_in_root.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::runtime {
namespace {

constexpr std::string_view kSocket = "/run/gantry/keeper.sock";
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
constexpr std::size_t kLongestAnswer = 64 << 10;

Error daemon_not_running(const std::string& share, const std::string& why) {
  return {Errc::NotFound,
          fmt::format("the share {} no longer exists ({}); `gantry share ls` lists the shares, "
                      "`gantry share create {}` creates it again",
                      share, why, share)};
}

// Connects through the file's descriptor, so that it works below a root and with any path length.
Result<sys::UniqueFd> connect_to(const sys::Host& host) {
  GANTRY_TRY(const auto file, host.open(kSocket, O_PATH));
  GANTRY_TRY(const auto path, sys::descriptor_path(file.get()));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(Errc::Internal, path);
  std::memcpy(address.sun_path, path.data(), path.size());
  sys::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error::sys(errno, fmt::format("connect to {}", host.outside(kSocket)));
  return socket;
}

Result<std::string> answer_to(int socket, const std::string& line) {
  if (::send(socket, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return Error::sys(errno, "send to the share daemon");
  std::string answer;
  std::array<char, 4096> buffer{};
  while (answer.find('\n') == std::string::npos && answer.size() < kLongestAnswer) {
    const auto got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "receive from the share daemon");
    if (got == 0) return Error(Errc::Denied, "the share daemon answers only root");
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return answer.substr(0, answer.find('\n'));
}

}  // namespace

Status register_with_share_daemon(const sys::Host& host, const std::string& share,
                                  std::uint64_t pid) {
  const auto socket = connect_to(host);
  if (!socket.ok()) {
    const auto code = socket.error().code();
    if (code == Errc::Denied) return socket.error();
    return daemon_not_running(share, socket.error().text());
  }
  const auto line = fmt::format(R"({{"ask":"adopt","name":{},"pid":{},"contained":true}})",
                                json::quote(share), std::max<std::uint64_t>(pid, 1));
  GANTRY_TRY(auto answer, answer_to(socket->get(), line + "\n"));
  GANTRY_TRY(const auto document, json::Document::parse(std::move(answer)));
  if (document["ok"].boolean().value_or(false)) return {};
  return daemon_not_running(share, document["error"].string().value_or("no answer"));
}

}  // namespace gantry::runtime
