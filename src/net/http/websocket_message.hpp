// SPDX-License-Identifier: Apache-2.0
// The frames of WebSocket (RFC 6455), as a client reads and writes them.
#pragma once

#include "base/core/result.hpp"
#include "net/http/reader.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::http {

enum class Opcode : std::uint8_t {
  Continuation = 0,
  Text = 1,
  Binary = 2,
  Close = 8,
  Ping = 9,
  Pong = 10
};

struct WebSocketMessage {
  Opcode opcode = Opcode::Text;  // of the first frame; never Continuation
  std::string payload;           // of all its frames
};

using FrameMask = std::array<std::uint8_t, 4>;
// One frame with the whole payload, masked as the protocol demands of clients.
std::string client_frame(Opcode opcode, std::string_view payload, const FrameMask& mask);

// Takes what a server sends apart as it arrives, in pieces of any size, and joins fragments.
// Bounded: a message has at most kBodyLimit bytes.
class WebSocketReader {
 public:
  // Appends the messages that `bytes` complete. Corrupt if they are not frames of a server;
  // TooLarge beyond the limit. After an error, the reader must not be used again.
  Status feed(std::string_view bytes, std::vector<WebSocketMessage>& messages);

 private:
  struct FrameHead {
    Opcode opcode = Opcode::Text;
    bool final = false;
    std::size_t head_bytes = 0;
    std::size_t payload_bytes = 0;
  };
  // nullopt if `pending_` does not have the whole head yet.
  Result<std::optional<FrameHead>> head_at(std::size_t begin) const;
  Status check_order(const FrameHead& head) const;
  void take(const FrameHead& head, std::string_view payload,
            std::vector<WebSocketMessage>& messages);

  std::string pending_;                        // frames that are not complete
  std::optional<WebSocketMessage> fragments_;  // a message whose last frame is still to come
};

}  // namespace gantry::http
