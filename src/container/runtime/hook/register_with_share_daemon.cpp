// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/hook/register_with_share_daemon.hpp"

#include "base/core/clock.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
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
#include <thread>

namespace gantry::runtime {
namespace {

constexpr std::string_view kSocket = "/run/gantry/keeper.sock";
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
constexpr std::size_t kLongestAnswer = 64 << 10;

constexpr std::string_view kShareRecords = "/run/gantry/shares";
constexpr auto kBetweenTries = std::chrono::milliseconds(50);

Error share_is_gone(const std::string& share, const std::string& why) {
  return {Errc::NotFound,
          fmt::format("the share {} no longer exists ({}); `gantry share ls` lists the shares, "
                      "`gantry share create {}` creates it again",
                      share, why, share)};
}

Error daemon_is_silent(const std::string& share, const std::string& why) {
  return {Errc::Busy,
          fmt::format("the share {} exists, but the share daemon does not answer ({}); it is "
                      "started again within a second: start the container again, and run `gantry "
                      "share ls` if that fails",
                      share, why)};
}

// A share's record stays while the daemon is restarted.
bool has_record(const sys::Host& host, const std::string& share) {
  return host.exists(fmt::format("{}/{}/share.json", kShareRecords, share));
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
    if (got == 0 && ::geteuid() != 0)
      return Error(Errc::Denied, "the share daemon answers only root");
    if (got == 0) return Error(Errc::NotFound, "it closed the connection");
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return answer.substr(0, answer.find('\n'));
}

Result<std::string> ask_daemon(const sys::Host& host, const std::string& line) {
  GANTRY_TRY(const auto socket, connect_to(host));
  return answer_to(socket.get(), line);
}

std::string adopt_request(const std::string& share, std::uint64_t pid) {
  json::Writer line;
  line.object([&] {
    line.member("ask", "adopt");
    line.member("name", share);
    line.member("pid", std::max<std::uint64_t>(pid, 1));
    line.member("contained", true);
  });
  return line.text() + "\n";
}

}  // namespace

Status register_with_share_daemon(const sys::Host& host, const std::string& share,
                                  std::uint64_t pid, std::chrono::milliseconds restart) {
  const auto line = adopt_request(share, pid);
  const auto deadline = Clock::now() + restart;
  auto answer = ask_daemon(host, line);
  while (!answer.ok()) {
    const auto& why = answer.error();
    if (why.code() == Errc::Denied) return why;
    if (!has_record(host, share)) return share_is_gone(share, why.text());
    if (Clock::now() >= deadline) return daemon_is_silent(share, why.text());
    std::this_thread::sleep_for(kBetweenTries);
    answer = ask_daemon(host, line);
  }
  GANTRY_TRY(const auto document, json::Document::parse(*std::move(answer)));
  if (document["ok"].boolean().value_or(false)) return {};
  return share_is_gone(share, document["error"].string().value_or("no answer"));
}

}  // namespace gantry::runtime
