// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/peer_identity.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <ctime>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace gantry::daemon {
namespace {

constexpr int kMaxParents = 64;

constexpr std::size_t kProcLimit = 16'384;

// /proc of this kernel, not of the machine below --root, because pids belong to this kernel.
std::string read_proc(pid_t pid, std::string_view name) {
  const sys::UniqueFd file(
      ::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file.valid()) return text;
  std::array<char, 4096> piece{};
  while (text.size() < kProcLimit) {
    const auto got = ::read(file.get(), piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// Field `number` of /proc/PID/stat, 3 or higher: the second field is a name that may contain
// anything.
std::uint64_t stat_field(pid_t pid, std::size_t number) {
  const auto text = read_proc(pid, "stat");
  const auto end = text.rfind(')');
  if (end == std::string::npos || end + 2 > text.size()) return 0;
  const auto fields = split(std::string_view(text).substr(end + 2), ' ');
  return number - 3 < fields.size() ? parse_u64(trim(fields[number - 3])).value_or(0) : 0;
}

std::string_view line_of(std::string_view text, std::string_view key) {
  for (const auto line : lines(text)) {
    if (line.starts_with(key)) return trim(line.substr(key.size()));
  }
  return {};
}

}  // namespace

std::uint64_t boottime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool has_ended(int pidfd) {
  pollfd wait{pidfd, POLLIN, 0};
  return ::poll(&wait, 1, 0) != 0;
}

bool is_hung_up(int socket) {
  pollfd wait{socket, 0, 0};
  return ::poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLERR)) != 0;
}

Result<sys::UniqueFd> pidfd_if_started_before(pid_t pid, std::uint64_t before_ns) {
  sys::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec
  if (!pidfd.valid()) return Error::sys(errno, "pidfd_open");
  if (start_interval(pid).earliest_ns > before_ns)
    return Error(Errc::NotFound, "the peer has ended, and another process has its pid");
  return pidfd;
}

Result<PeerIdentity> peer_identity(int socket, std::uint64_t before_ns) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Error::sys(errno, "getsockopt SO_PEERCRED");
  if (peer.pid <= 0) return Error(Errc::Denied, "the peer is in a pid namespace outside of ours");
  PeerIdentity found{.pid = peer.pid, .uid = peer.uid};
  int pidfd = -1;
  size = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
    found.pidfd = sys::UniqueFd(pidfd);
  } else {
    GANTRY_TRY(found.pidfd, pidfd_if_started_before(peer.pid, before_ns));
    if (is_hung_up(socket)) return Error(Errc::NotFound, "the peer has ended");
  }
  if (has_ended(found.pidfd.get())) return Error(Errc::NotFound, "the peer has ended");
  return found;
}

std::uint32_t innermost_pid(pid_t pid) {
  const auto text = read_proc(pid, "status");
  const auto list = split(line_of(text, "NSpid:"), '\t');
  if (list.empty()) return 0;
  return static_cast<std::uint32_t>(parse_u64(trim(list.back())).value_or(0));
}

std::string command_of(pid_t pid) {
  return printable(trim(read_proc(pid, "comm")));
}

std::string cgroup_of(pid_t pid) {
  return read_proc(pid, "cgroup");
}

std::uint64_t start_ticks(pid_t pid) {
  return stat_field(pid, 22);
}

StartInterval start_interval(pid_t pid) {
  const auto tick = 1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto ticks = start_ticks(pid);
  return {.earliest_ns = ticks * tick, .latest_ns = (ticks + 1) * tick};
}

pid_t parent_of(pid_t pid) {
  return static_cast<pid_t>(stat_field(pid, 4));
}

bool is_kernel_thread(pid_t pid) {
  constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD, man 5 proc
  return (stat_field(pid, 9) & kKernelThread) != 0;
}

pid_t container_init_pid(pid_t client, pid_t named) {
  const auto inner = innermost_pid(client);
  if (inner == 0) return 0;
  if (inner == static_cast<std::uint32_t>(client)) return named > 1 ? named : 0;
  for (int i = 0; i < kMaxParents && client > 1; ++i, client = parent_of(client)) {
    if (innermost_pid(client) == 1) return client;
  }
  return 0;
}

}  // namespace gantry::daemon
