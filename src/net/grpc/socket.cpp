// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace gantry::grpc {
namespace {

constexpr int kBacklog = 64;

Result<sys::UniqueFd> make_socket() {
  sys::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Error::sys(errno, "socket");
  return fd;
}

const sockaddr* general(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error(Errc::Invalid, fmt::format("a socket path must have 1 to {} bytes, not {}: {}",
                                            sizeof address.sun_path - 1, path.size(), path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<sys::UniqueFd> listen_unix(const std::string& path) {
  GANTRY_TRY(const sockaddr_un address, unix_address(path));
  GANTRY_TRY(sys::UniqueFd fd, make_socket());
  ::fchmod(fd.get(), 0600);  // before bind, so that the file has this mode from the beginning
  if (::bind(fd.get(), general(address), sizeof address) != 0) {
    const int err = errno;
    if (err == EADDRINUSE)
      return Error(Errc::Exists, fmt::format("bind {}: the path exists already", path));
    return Error::sys(err, fmt::format("bind {}", path));
  }
  if (::listen(fd.get(), kBacklog) != 0) return Error::sys(errno, fmt::format("listen {}", path));
  return fd;
}

Result<sys::UniqueFd> connect_unix(const std::string& path) {
  GANTRY_TRY(const sockaddr_un address, unix_address(path));
  GANTRY_TRY(sys::UniqueFd fd, make_socket());
  if (::connect(fd.get(), general(address), sizeof address) == 0) return fd;
  return Error::sys(errno, fmt::format("connect {}", path));
}

}  // namespace gantry::grpc
