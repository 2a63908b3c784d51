// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/unix_address.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace gantry::daemon {

Result<UnixAddress> unix_address(const std::string& path) {
  UnixAddress place;
  auto short_path = path;
  if (path.size() >= sizeof place.address.sun_path) {
    const auto slash = path.rfind('/');
    const auto directory = path.substr(0, slash);
    place.directory = sys::UniqueFd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!place.directory.valid()) return Error::sys(errno, "open").in(directory);
    short_path = fmt::format("/proc/self/fd/{}{}", place.directory.get(), path.substr(slash));
  }
  if (short_path.size() >= sizeof place.address.sun_path)
    return Error(Errc::Invalid, fmt::format("{}: the name of a socket may have at most {} bytes",
                                            path, sizeof place.address.sun_path - 1));
  place.address.sun_family = AF_UNIX;
  std::memcpy(place.address.sun_path, short_path.data(), short_path.size());
  return place;
}

}  // namespace gantry::daemon
