// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/mps_socket_internal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace gantry::sim {
namespace {

constexpr const char* kSocketName = "control";

// Reaches a socket through the descriptor of its directory if the whole name is too long.
class SocketAddress {
 public:
  explicit SocketAddress(const char* directory) {
    address_.sun_family = AF_UNIX;
    const int length =
        snprintf(address_.sun_path, sizeof address_.sun_path, "%s/%s", directory, kSocketName);
    if (length > 0 && static_cast<size_t>(length) < sizeof address_.sun_path) return;
    directory_ = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(address_.sun_path, sizeof address_.sun_path, "/proc/self/fd/%d/%s", directory_,
             kSocketName);
  }
  ~SocketAddress() {
    if (directory_ >= 0) close(directory_);
  }
  SocketAddress(const SocketAddress&) = delete;
  SocketAddress& operator=(const SocketAddress&) = delete;

  const char* path() const { return address_.sun_path; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  int directory_ = -1;
  sockaddr_un address_ = {};
};

int packet_socket() {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int close_and_fail(int fd) {
  const int reason = errno;
  if (fd >= 0) close(fd);
  errno = reason;
  return -1;
}

}  // namespace

const char* mps_pipe_directory() {
  const char* said = getenv("CUDA_MPS_PIPE_DIRECTORY");
  return said != nullptr && said[0] != '\0' ? said : "/tmp/nvidia-mps";
}

int connect_to_mps(const char* directory) {
  const SocketAddress address(directory);
  const int fd = packet_socket();
  if (fd < 0 || connect(fd, address.get(), SocketAddress::kSize) != 0) return close_and_fail(fd);
  return fd;
}

// The caller holds the daemon's lock, so a socket that is there belongs to no one.
int listen_for_mps(const char* directory) {
  const SocketAddress address(directory);
  unlink(address.path());
  const int fd = packet_socket();
  if (fd < 0 || bind(fd, address.get(), SocketAddress::kSize) != 0) return close_and_fail(fd);
  // Clients of every user connect.
  if (chmod(address.path(), 0666) != 0 || listen(fd, 64) != 0) return close_and_fail(fd);
  return fd;
}

bool send_packet(int fd, const MpsPacket& packet) {
  ssize_t sent = 0;
  do {
    sent = send(fd, &packet, sizeof packet, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof packet);
}

bool send_text(int fd, MpsMessage kind, const char* text) {
  MpsPacket packet = {};
  packet.kind = kind;
  snprintf(packet.text, sizeof packet.text, "%s", text);
  return send_packet(fd, packet);
}

PacketStatus receive_packet(int fd, Wait wait, MpsPacket& packet) {
  ssize_t got = 0;
  do {
    got = recv(fd, &packet, sizeof packet, wait == Wait::No ? MSG_DONTWAIT : 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return PacketStatus::Nothing;
  if (got != static_cast<ssize_t>(sizeof packet)) return PacketStatus::Closed;
  packet.text[sizeof packet.text - 1] = '\0';
  return PacketStatus::Packet;
}

}  // namespace gantry::sim
