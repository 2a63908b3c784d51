// SPDX-License-Identifier: Apache-2.0
// A TCP connection, with TLS or without, in which everything has a deadline.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace gantry::http {

using Deadline = std::chrono::steady_clock::time_point;

class Connection {
 public:
  virtual ~Connection() = default;
  virtual Status write(std::string_view bytes, Deadline deadline) = 0;
  // At least one byte; "" when the peer closed.
  virtual Result<std::string> read(Deadline deadline) = 0;
  // Between two requests there is nothing to read: if there is, the peer has closed. Does not wait.
  virtual bool is_idle() const = 0;
};

// `cancel`: a descriptor that becomes readable to end a wait with Timeout; -1: none. It outlives
// the connection.
Result<std::unique_ptr<Connection>> connect(const Endpoint& endpoint, Deadline deadline,
                                            int cancel = -1);
Result<std::unique_ptr<Connection>> with_tls(std::unique_ptr<Connection> plain,
                                             const Endpoint& endpoint, Deadline deadline);

}  // namespace gantry::http
