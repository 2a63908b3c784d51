// SPDX-License-Identifier: Apache-2.0
// Frames mean the same in one piece and byte by byte, and no message is longer than the limit.
#include "net/http/websocket_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gantry::http::WebSocketReader whole;
  std::vector<gantry::http::WebSocketMessage> messages;
  const bool fed = whole.feed(text, messages).ok();

  gantry::http::WebSocketReader slow;
  std::vector<gantry::http::WebSocketMessage> slow_messages;
  bool slow_fed = true;
  for (std::size_t i = 0; slow_fed && i < size; ++i)
    slow_fed = slow.feed(text.substr(i, 1), slow_messages).ok();

  GANTRY_ASSERT(fed == slow_fed);
  GANTRY_ASSERT(messages.size() == slow_messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    GANTRY_ASSERT(messages[i].opcode == slow_messages[i].opcode);
    GANTRY_ASSERT(messages[i].payload == slow_messages[i].payload);
    GANTRY_ASSERT(messages[i].payload.size() <= gantry::http::kBodyLimit);
  }
  return 0;
}
