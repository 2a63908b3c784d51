// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

namespace gantry::daemon {

// Where a socket is, for bind and connect. One below a long root (more than 107 bytes) is reached
// through its directory's descriptor.
struct UnixAddress {
  sockaddr_un address{};
  sys::UniqueFd directory;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<UnixAddress> unix_address(const std::string& path);

}  // namespace gantry::daemon
