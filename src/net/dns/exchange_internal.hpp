// SPDX-License-Identifier: Apache-2.0
// Sends queries to one DNS server and waits for the responses.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/socket_wait.hpp"
#include "net/dns/message.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gantry::dns {

struct Exchange {
  std::string query;
  std::optional<Response> response;
  std::optional<Error> failure;  // why the server that was asked last gave no response

  bool is_waiting() const { return !response && !failure; }
};

enum class Transport : std::uint8_t { Udp, Tcp };

// Asks the queries that have no response yet, all at once, each once. What UDP truncates is asked
// again by TCP. Afterwards each exchange has a response or a failure.
void ask_server(const SocketAddress& server, Transport transport, std::span<Exchange> exchanges,
                const sys::WaitLimit& patience);

}  // namespace gantry::dns
