// SPDX-License-Identifier: Apache-2.0
// Unix stream sockets, close-on-exec and non-blocking.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/un.h>

#include <string>

namespace gantry::grpc {

// Invalid if the path is longer than the kernel's limit of 107 bytes.
Result<sockaddr_un> unix_address(const std::string& path);

// Readable and writable by its owner alone. Exists when the path is taken, Invalid if the path is
// longer than the kernel's limit of 107 bytes.
Result<sys::UniqueFd> listen_unix(const std::string& path);

// NotFound: no such socket. Busy: no process listens there (ECONNREFUSED), or too many wait
// (EAGAIN, worth another try).
Result<sys::UniqueFd> connect_unix(const std::string& path);

}  // namespace gantry::grpc
