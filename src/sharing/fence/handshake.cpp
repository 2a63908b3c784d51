// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/handshake.hpp"

#include "sharing/fence/libc.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace gantry::fence {
namespace {

struct VersionMark {
  char words[sizeof FENCE_SPEAKS - 1];
  char version;
};
static_assert(FENCE_VERSION < 10, "one digit");

constexpr VersionMark version_mark() {
  VersionMark made{};
  for (size_t i = 0; i < sizeof made.words; ++i) made.words[i] = FENCE_SPEAKS[i];
  made.version = static_cast<char>('0' + FENCE_VERSION);
  return made;
}
constexpr VersionMark kVersionMark = version_mark();

// A high number, away from programs that expect small descriptors; lower if the limit is low.
int move_high(int fd) {
  constexpr int kWanted[] = {960, 200};
  for (const int at_least : kWanted) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, at_least);
    if (moved < 0) continue;
    close(fd);
    return moved;
  }
  return fd;
}

enum class ConnectMode : uint8_t { Waits, AtOnce };  // if the daemon's backlog is full

int connect_to_daemon(ConnectMode how, uint64_t wait_ms, HandshakeResult& without) {
  without = HandshakeResult::No;
  const int flags = how == ConnectMode::AtOnce ? SOCK_CLOEXEC | SOCK_NONBLOCK : SOCK_CLOEXEC;
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);
  if (fd < 0) return -1;
  const timeval most = {static_cast<time_t>(wait_ms / 1000),
                        static_cast<suseconds_t>(wait_ms % 1000 * 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof FENCE_SOCKET <= sizeof address.sun_path);
  // The path must be a string and not immediate values in the code: tests copy the library for
  // another directory and replace the string.
  const char* path = FENCE_SOCKET;
  __asm__("" : "+r"(path));
  memcpy(address.sun_path, path, sizeof FENCE_SOCKET);
  int result = -1;
  do {
    result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return move_high(fd);
  if (errno == ECONNREFUSED || errno == ENOENT) without = HandshakeResult::NoDaemon;
  close(fd);
  return -1;
}

bool say_hello(int fd, FenceRole role) {
  __asm__ volatile("" : : "r"(&kVersionMark));  // must be used, or the linker would drop it
  const FenceHello hello{.magic = FENCE_MAGIC,
                         .version = FENCE_VERSION,
                         .role = static_cast<uint32_t>(role),
                         .pid = static_cast<uint32_t>(getpid())};
  ssize_t sent = -1;
  do {
    sent = send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof hello);
}

// All received descriptors, at most `most`; the kernel has closed the rest.
int descriptors(msghdr& message, int* fds, int most) {
  int count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      if (count < most) {
        fds[count++] = fd;
      } else {
        close(fd);
      }
    }
  }
  return count;
}

// False with errno EAGAIN if there is no answer yet.
bool hear_welcome(int fd, FenceWelcome& welcome, Handshake& said) {
  iovec data = {&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = -1;
  do {
    got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  int fds[2] = {-1, -1};
  const int count = descriptors(message, fds, 2);
  said.limits = fds[0];
  said.usage = fds[1];
  errno = 0;
  return got == static_cast<ssize_t>(sizeof welcome) && count == 2;
}

bool as_large(int fd, uint64_t bytes) {
  struct stat status {};
  return file_status(fd, status) && status.st_size >= 0 &&
         static_cast<uint64_t>(status.st_size) >= bytes;
}

// A page that could shrink would kill the program.
bool cannot_shrink(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

bool read_gpu_count(int fd, uint32_t& count) {
  uint32_t start[4] = {};  // magic, version, flags, gpu_count
  static_assert(offsetof(FenceLimits, gpu_count) == 3 * sizeof start[0]);
  if (pread(fd, start, sizeof start, 0) != static_cast<ssize_t>(sizeof start)) return false;
  count = start[3];
  return start[0] == FENCE_MAGIC && start[1] == FENCE_VERSION && count > 0 &&
         count <= FENCE_MAX_GPUS;
}

bool acceptable(const FenceWelcome& welcome, Handshake& said) {
  if (welcome.magic != FENCE_MAGIC || welcome.version != FENCE_VERSION ||
      welcome.refusal != FENCE_ACCEPTED || welcome.slot >= FENCE_MAX_PROCESSES)
    return false;
  if (!as_large(said.limits, sizeof(FenceLimits)) || !cannot_shrink(said.limits) ||
      !cannot_shrink(said.usage) || !read_gpu_count(said.limits, said.gpu_count))
    return false;
  said.slot = welcome.slot;
  return as_large(said.usage, fence_usage_size(said.gpu_count));
}

bool is_not_yet(const FenceWelcome& welcome) {
  return welcome.magic == FENCE_MAGIC && welcome.version == FENCE_VERSION &&
         welcome.refusal == FENCE_NOT_YET;
}

void hang_up(const Handshake& said) {
  const int open[] = {said.socket, said.limits, said.usage};
  for (const int fd : open) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace

HandshakeResult perform_handshake(FenceRole role, uint64_t wait_ms, Handshake& said) {
  HandshakeResult answer{};
  const int socket = connect_to_daemon(ConnectMode::Waits, wait_ms, answer);
  if (socket < 0) return answer;
  if (!say_hello(socket, role)) {
    close(socket);
    return HandshakeResult::No;
  }
  answer = finish_handshake(socket, said);
  if (answer != HandshakeResult::Pending) return answer;
  close(socket);  // the time is over
  return HandshakeResult::No;
}

int start_handshake(FenceRole role, HandshakeResult& answer) {
  const int socket = connect_to_daemon(ConnectMode::AtOnce, 1, answer);
  if (socket < 0) return -1;
  answer = HandshakeResult::Pending;
  if (say_hello(socket, role)) return socket;
  close(socket);
  answer = HandshakeResult::No;
  return -1;
}

HandshakeResult finish_handshake(int socket, Handshake& said) {
  said = {socket, -1, -1, 0, 0};
  FenceWelcome welcome{};
  const bool heard = hear_welcome(socket, welcome, said);
  if (!heard && (errno == EAGAIN || errno == EWOULDBLOCK)) return HandshakeResult::Pending;
  if (heard && acceptable(welcome, said)) return HandshakeResult::Welcome;
  hang_up(said);
  return is_not_yet(welcome) ? HandshakeResult::NotYet : HandshakeResult::No;
}

}  // namespace gantry::fence
