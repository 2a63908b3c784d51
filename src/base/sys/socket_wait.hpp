// SPDX-License-Identifier: Apache-2.0
// Sockets that do not block, in which every wait has a deadline and can be cancelled.
#pragma once

#include "base/core/clock.hpp"
#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/socket.h>

#include <span>
#include <string_view>

namespace gantry::sys {

// When a wait ends without its socket: at the deadline, or when the descriptor `cancel` becomes
// readable (-1: none). Both are Timeout.
struct WaitLimit {
  Clock::time_point deadline;
  int cancel = -1;
};

// Waits until poll reports one of `events` (POLLIN, POLLOUT) or an error of the socket.
Status wait_for(int fd, short events, const WaitLimit& patience);

bool is_readable(int fd);  // does not wait; false for -1

// A TCP connection.
Result<UniqueFd> connect_stream(const sockaddr* address, socklen_t size, const WaitLimit& patience);

Status send_all(int fd, std::string_view bytes, const WaitLimit& patience);

// At least one byte; 0 when the peer closed. The deadline ends it also if the peer always has more.
Result<std::size_t> receive(int fd, std::span<char> buffer, const WaitLimit& patience);

}  // namespace gantry::sys
