// SPDX-License-Identifier: Apache-2.0
// A WebSocket client (RFC 6455) for text messages. It blocks, as http::Client does, and everything
// has a deadline. It offers no extension and no subprotocol.
#pragma once

#include "base/core/result.hpp"
#include "net/http/client.hpp"
#include "net/http/websocket_message.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace gantry::http {

class WebSocket {
 public:
  WebSocket(std::unique_ptr<Connection> connection, WebSocketReader reader,
            std::vector<WebSocketMessage> received);
  ~WebSocket();
  WebSocket(WebSocket&&) noexcept;
  WebSocket& operator=(WebSocket&&) noexcept;

  Status send_text(std::string_view text, std::chrono::steady_clock::time_point deadline);

  // The next text message; answers pings and skips what is binary. nullopt: the peer closed.
  // Timeout if none comes. Whether it is UTF-8 is for the reader of the text to check.
  Result<std::optional<std::string>> read(std::chrono::steady_clock::time_point deadline);

 private:
  Status send(Opcode opcode, std::string_view payload,
              std::chrono::steady_clock::time_point deadline);

  std::unique_ptr<Connection> connection_;
  WebSocketReader reader_;
  std::deque<WebSocketMessage> received_;
};

// The connection, or the server's answer if it is not 101 (Switching Protocols). `request` has the
// target and further headers. Corrupt if the server does not prove that it speaks WebSocket.
using Upgrade = std::variant<WebSocket, Response>;
Result<Upgrade> open_websocket(const Endpoint& endpoint, Request request,
                               std::chrono::milliseconds timeout);

}  // namespace gantry::http
