// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

namespace gantry::daemon {

// The address of a Unix socket, for bind and connect. If its path is longer than 107 bytes, it is
// reached through its directory's descriptor.
struct UnixAddress {
  sockaddr_un address{};
  sys::UniqueFd directory;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<UnixAddress> unix_address(const std::string& path);

}  // namespace gantry::daemon
