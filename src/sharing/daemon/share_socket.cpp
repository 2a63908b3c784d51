// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_socket.hpp"

#include "base/core/clock.hpp"
#include "sharing/daemon/unix_address.hpp"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace gantry::daemon {
namespace {

constexpr int kShareBacklog = 512;
constexpr int kAcceptAtOnce = 16;

// False if the peer does not read, or is gone.
bool send_welcome(int socket, const FenceWelcome& welcome, const SharedPages* pages) {
  FenceWelcome copy = welcome;
  iovec part{&copy, sizeof copy};
  std::array<int, 2> descriptors{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (pages != nullptr) {
    descriptors = {pages->limits_fd(), pages->usage_fd()};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof copy);
}

// True if the next message has no descriptors, as the fence's messages. A message with descriptors
// is not read, because reading it would mean closing them (background_closer.hpp).
bool is_plain(int socket) {
  char first = 0;
  iovec part{&first, sizeof first};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) < 0 ||
         (message.msg_flags & MSG_CTRUNC) == 0;
}

FenceWelcome refusal(FenceRefusal why) {
  return {.magic = FENCE_MAGIC, .version = FENCE_VERSION, .refusal = why};
}

}  // namespace

struct ShareSocket::Peer {
  sys::UniqueFd socket;
  PeerIdentity identity;  // its pidfd moves to the AttachedProcess
  Clock::time_point since;
  bool greeted = false;
  bool held_back = false;
  bool ended = false;                 // its process has; the last messages are still read
  std::optional<std::uint32_t> slot;  // of a worker
  int reports = 0;                    // since the last heartbeat
  sys::Loop::Watch watch;             // must end before the socket
};

ShareSocket::ShareSocket(sys::Loop& loop, std::string path, SharedPages& pages,
                         AttachedProcesses& attached_processes, Callbacks callbacks,
                         SocketLimits bounds)
    : loop_(loop),
      path_(std::move(path)),
      pages_(pages),
      attached_processes_(attached_processes),
      callbacks_(std::move(callbacks)),
      bounds_(bounds) {}

// Connections that wait to be accepted may have sent messages, too.
ShareSocket::~ShareSocket() {
  for (auto& [fd, peer] : peers_) {
    peer->watch.cancel();
    closer_.close(std::move(peer->socket));
  }
  accepting_.cancel();
  closer_.close(std::move(listener_));
}

Result<std::unique_ptr<ShareSocket>> ShareSocket::open(sys::Loop& loop, const std::string& path,
                                                       SharedPages& pages,
                                                       AttachedProcesses& attached_processes,
                                                       Callbacks callbacks, SocketLimits bounds) {
  std::unique_ptr<ShareSocket> made(
      new ShareSocket(loop, path, pages, attached_processes, std::move(callbacks), bounds));
  GANTRY_CHECK(made->listen().in(path));
  return made;
}

Status ShareSocket::listen() {
  GANTRY_TRY(const auto place, unix_address(path_));
  listener_ = sys::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return Error::sys(errno, "socket");
  ::unlink(path_.c_str());
  if (::bind(listener_.get(), place.get(), sizeof place.address) != 0)
    return Error::sys(errno, "bind");
  if (::chmod(path_.c_str(), 0666) != 0) return Error::sys(errno, "chmod");
  if (::listen(listener_.get(), kShareBacklog) != 0) return Error::sys(errno, "listen");
  GANTRY_TRY(accepting_,
             loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); }));
  return {};
}

void ShareSocket::pause() {
  paused_ = true;
  accepting_.wait_for(0);
}

void ShareSocket::accept_some() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    if (accepted_ >= bounds_.accepts_per_heartbeat) return pause();
    const auto before = boottime_ns();
    sys::UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      ++accepted_;
      accept_one(std::move(socket), before);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) pause();  // no descriptors, no memory
    return;
  }
}

// The kernel assigns the lowest free descriptor, so a high number means that few are left.
bool ShareSocket::has_room(int fd, pid_t pid) const {
  rlimit files{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &files) == 0;
  if (known &&
      static_cast<rlim_t>(fd) + static_cast<rlim_t>(bounds_.reserved_descriptors) > files.rlim_cur)
    return false;
  const auto of_process = of_process_.find(pid);
  return peers_.size() + closer_.open() < bounds_.connections &&
         (of_process == of_process_.end() || of_process->second < bounds_.connections_per_process);
}

void ShareSocket::refuse(sys::UniqueFd socket, FenceRefusal why) {
  send_welcome(socket.get(), refusal(why), nullptr);
  closer_.close(std::move(socket));
}

void ShareSocket::accept_one(sys::UniqueFd socket, std::uint64_t before_ns) {
  const int fd = socket.get();
  auto identity = peer_identity(fd, before_ns);
  if (!identity.ok() || (callbacks_.admits && !callbacks_.admits(identity->pid)))
    return refuse(std::move(socket), FENCE_NO_SHARE);
  if (!has_room(fd, identity->pid)) return refuse(std::move(socket), FENCE_NO_SLOT);
  auto peer = std::make_unique<Peer>();
  peer->socket = std::move(socket);
  peer->identity = *std::move(identity);
  peer->since = Clock::now();
  auto watch = loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { on_readable(fd); });
  if (!watch.ok()) return closer_.close(std::move(peer->socket));
  peer->watch = *std::move(watch);
  ++of_process_[peer->identity.pid];
  peers_[fd] = std::move(peer);
}

void ShareSocket::forget(int fd) {
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return;
  const auto counted = of_process_.find(found->second->identity.pid);
  if (counted != of_process_.end() && --counted->second == 0) of_process_.erase(counted);
  const auto pid = found->second->identity.pid;
  const auto slot = found->second->slot;
  found->second->watch.cancel();
  closer_.close(std::move(found->second->socket));
  peers_.erase(found);
  if (slot) attached_processes_.disconnected(pid, *slot);
}

void ShareSocket::on_readable(int fd) {
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  if (!peer.greeted && greeted_ >= bounds_.hellos_per_heartbeat) return throttle(peer);
  for (int i = 0; i < bounds_.reports_at_once; ++i) {
    if (!is_plain(fd)) return forget(fd);
    // One byte more than the largest message, so that a longer message is recognised by its size.
    std::array<char, sizeof(FenceReport) + 1> bytes{};
    const auto got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (peer.ended) forget(fd);
      return;
    }
    if (got <= 0 || !take(peer, bytes.data(), static_cast<std::size_t>(got))) return forget(fd);
    if (++peer.reports < bounds_.reports_per_heartbeat &&
        ++reports_ < bounds_.reports_per_heartbeat_total)
      continue;
    return throttle(peer);
  }
}

// The peer waits for the next heartbeat.
void ShareSocket::throttle(Peer& peer) {
  peer.held_back = true;
  peer.watch.wait_for(0);
}

// False if the peer breaks the protocol, or must be disconnected.
bool ShareSocket::take(Peer& peer, const char* bytes, std::size_t size) {
  if (!peer.greeted) {
    FenceHello hello{};
    if (size != sizeof hello) return false;
    std::memcpy(&hello, bytes, sizeof hello);
    return handle_hello(peer, hello);
  }
  FenceReport report{};
  if (size != sizeof report || !peer.slot) return false;
  std::memcpy(&report, bytes, sizeof report);
  if (report.event < FENCE_ACTIVE || report.event > FENCE_REFUSED ||
      report.gpu >= pages_.gpu_count())
    return false;
  // The process may have ended since, because of this.
  if (report.event == FENCE_REFUSED) {
    if (callbacks_.refused) callbacks_.refused();
    return true;
  }
  // A child may continue to report for a parent that has ended.
  const auto* member = attached_processes_.of_pid(peer.identity.pid);
  peer.ended = member == nullptr || member->slot != *peer.slot;
  if (!peer.ended && callbacks_.report) callbacks_.report(*peer.slot, report);
  return true;
}

bool ShareSocket::handle_hello(Peer& peer, const FenceHello& hello) {
  const int fd = peer.socket.get();
  if (hello.magic != FENCE_MAGIC || (hello.role != FENCE_WORKER && hello.role != FENCE_OBSERVER))
    return false;
  if (hello.version != FENCE_VERSION) {
    send_welcome(fd, refusal(FENCE_BAD_VERSION), nullptr);
    return false;
  }
  FenceWelcome welcome = refusal(FENCE_ACCEPTED);
  welcome.limits_size = pages_.limits_size();
  welcome.usage_size = pages_.usage_size();
  if (hello.role == FENCE_WORKER) {
    if (callbacks_.ready && !callbacks_.ready()) {
      send_welcome(fd, refusal(FENCE_NOT_YET), nullptr);
      return false;
    }
    ++greeted_;
    auto slot = attached_processes_.join(std::move(peer.identity));
    if (!slot.ok()) {
      send_welcome(fd, refusal(FENCE_NO_SLOT), nullptr);
      return false;
    }
    peer.slot = *slot;
    attached_processes_.connected(*slot);
    welcome.slot = *slot;
  }
  peer.identity.pidfd.reset();
  peer.greeted = true;
  return send_welcome(fd, welcome, &pages_);
}

void ShareSocket::on_heartbeat() {
  accepted_ = 0;
  greeted_ = 0;
  reports_ = 0;
  if (std::exchange(paused_, false)) accepting_.wait_for(EPOLLIN);
  const auto too_late = Clock::now() - bounds_.hello_timeout;
  std::vector<int> silent;
  for (const auto& [fd, peer] : peers_) {
    peer->reports = 0;
    if (std::exchange(peer->held_back, false)) peer->watch.wait_for(EPOLLIN);
    if (!peer->greeted && peer->since < too_late) silent.push_back(fd);
  }
  for (const int fd : silent) forget(fd);
}

}  // namespace gantry::daemon
