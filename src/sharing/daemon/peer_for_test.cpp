// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/peer_for_test.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace gantry::daemon {
namespace {
constexpr int kPatienceMs = 10'000;
constexpr useconds_t kStepUs = 5'000;

Mapping mapped(int fd, std::size_t size, int protection) {
  void* made = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  return made == MAP_FAILED ? Mapping() : Mapping(made, size);
}

}  // namespace

TestPeer::TestPeer(const std::string& path)
    : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    socket_.reset();
}

bool TestPeer::send(const void* bytes, std::size_t size) const {
  return ::send(socket_.get(), bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool TestPeer::hello(FenceRole role) const {
  const FenceHello hello{FENCE_MAGIC, FENCE_VERSION, role, static_cast<std::uint32_t>(::getpid())};
  return send(&hello, sizeof hello);
}

bool TestPeer::hello_with(int descriptor) const {
  FenceHello hello{FENCE_MAGIC, FENCE_VERSION, FENCE_OBSERVER, 0};
  iovec part{&hello, sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(fd(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof hello);
}

bool TestPeer::report(FenceEvent event, std::uint32_t gpu, std::uint32_t turn,
                      std::uint64_t value) const {
  const FenceReport report{event, gpu, turn, 0, value};
  return send(&report, sizeof report);
}

bool TestPeer::receive(AttachReply& attached) const {
  pollfd wait{socket_.get(), POLLIN, 0};
  if (::poll(&wait, 1, kPatienceMs) != 1) return false;
  std::array<int, 2> descriptors{-1, -1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  iovec part{&attached.welcome, sizeof attached.welcome};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (got != static_cast<ssize_t>(sizeof attached.welcome)) return false;
  if (const auto* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    std::memcpy(descriptors.data(), CMSG_DATA(header), sizeof descriptors);
    attached.limits = sys::UniqueFd(descriptors[0]);
    attached.usage = sys::UniqueFd(descriptors[1]);
  }
  return true;
}

bool TestPeer::is_cut() const {
  for (;;) {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, kPatienceMs) != 1) return false;
    std::array<char, 256> bytes{};
    if (::recv(socket_.get(), bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

AttachedPeer::AttachedPeer(const std::string& path) {
  const auto until = monotonic_ns() + std::uint64_t{kPatienceMs} * 1'000'000;
  do {
    peer_.emplace(path);
    if (!peer_->hello() || !peer_->receive(attached_)) return;
    if (attached_.welcome.refusal != FENCE_NOT_YET) break;
    ::usleep(kStepUs);
  } while (monotonic_ns() < until);
  if (attached_.welcome.refusal != FENCE_ACCEPTED) return;
  limits_ = mapped(attached_.limits.get(), sizeof(FenceLimits), PROT_READ);
  usage_ = mapped(attached_.usage.get(), usage_size(), PROT_READ | PROT_WRITE);
}

FenceUsageRow& AttachedPeer::row(std::uint32_t gpu) const {
  auto* rows = reinterpret_cast<FenceUsageRow*>(static_cast<FenceUsage*>(usage()) + 1);
  return rows[std::size_t{gpu} * FENCE_MAX_PROCESSES + slot()];
}

}  // namespace gantry::daemon
