// SPDX-License-Identifier: Apache-2.0
#include "net/http/websocket_message.hpp"

#include <fmt/format.h>

namespace gantry::http {
namespace {

constexpr std::uint8_t kFinal = 0x80;
constexpr std::uint8_t kReserved = 0x70;
constexpr std::uint8_t kOpcode = 0x0f;
constexpr std::uint8_t kMasked = 0x80;
constexpr std::uint8_t kTwoByteLength = 126;
constexpr std::uint8_t kEightByteLength = 127;
constexpr std::size_t kControlLimit = 125;

Error corrupt_frame(std::string_view what) {
  return {Errc::Corrupt, fmt::format("the answer is not WebSocket: {}", what)};
}

bool is_control(Opcode opcode) {
  return static_cast<std::uint8_t>(opcode) >= static_cast<std::uint8_t>(Opcode::Close);
}

bool is_known(std::uint8_t opcode) {
  return opcode <= static_cast<std::uint8_t>(Opcode::Binary) ||
         (opcode >= static_cast<std::uint8_t>(Opcode::Close) &&
          opcode <= static_cast<std::uint8_t>(Opcode::Pong));
}

void append_number(std::string& out, std::uint64_t number, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) out += static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint64_t number_in(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8U | static_cast<std::uint8_t>(byte);
  return number;
}

}  // namespace

std::string client_frame(Opcode opcode, std::string_view payload, const FrameMask& mask) {
  std::string frame(1, static_cast<char>(kFinal | static_cast<std::uint8_t>(opcode)));
  if (payload.size() < kTwoByteLength) {
    frame += static_cast<char>(kMasked | payload.size());
  } else if (payload.size() <= 0xffff) {
    frame += static_cast<char>(kMasked | kTwoByteLength);
    append_number(frame, payload.size(), 2);
  } else {
    frame += static_cast<char>(kMasked | kEightByteLength);
    append_number(frame, payload.size(), 8);
  }
  for (const auto byte : mask) frame += static_cast<char>(byte);
  for (std::size_t i = 0; i < payload.size(); ++i)
    frame += static_cast<char>(static_cast<std::uint8_t>(payload[i]) ^ mask[i % mask.size()]);
  return frame;
}

Result<std::optional<WebSocketReader::FrameHead>> WebSocketReader::head_at(
    std::size_t begin) const {
  const auto bytes = std::string_view(pending_).substr(begin);
  if (bytes.size() < 2) return std::optional<FrameHead>();
  const auto first = static_cast<std::uint8_t>(bytes[0]);
  const auto second = static_cast<std::uint8_t>(bytes[1]);
  if ((first & kReserved) != 0) return corrupt_frame("an extension that was not agreed on");
  if (!is_known(first & kOpcode)) return corrupt_frame("an unknown kind of frame");
  if ((second & kMasked) != 0) return corrupt_frame("a masked frame from a server");
  FrameHead head{.opcode = static_cast<Opcode>(first & kOpcode),
                 .final = (first & kFinal) != 0,
                 .head_bytes = 2};
  std::uint64_t length = second;
  if (second >= kTwoByteLength) {
    const std::size_t width = second == kTwoByteLength ? 2 : 8;
    if (bytes.size() < 2 + width) return std::optional<FrameHead>();
    length = number_in(bytes.substr(2, width));
    head.head_bytes += width;
    if (length < (width == 2 ? std::uint64_t{kTwoByteLength} : std::uint64_t{0x10000}))
      return corrupt_frame("a length that is not in its shortest form");
  }
  if (length > kBodyLimit) return too_large();
  head.payload_bytes = static_cast<std::size_t>(length);
  return std::optional(head);
}

Status WebSocketReader::check_order(const FrameHead& head) const {
  if (is_control(head.opcode)) {
    if (!head.final || head.payload_bytes > kControlLimit)
      return corrupt_frame("a control frame that is too long or has several parts");
    return {};
  }
  if ((head.opcode == Opcode::Continuation) != fragments_.has_value())
    return corrupt_frame("the parts of two messages are mixed");
  if (fragments_ && fragments_->payload.size() + head.payload_bytes > kBodyLimit)
    return too_large();
  return {};
}

void WebSocketReader::take(const FrameHead& head, std::string_view payload,
                           std::vector<WebSocketMessage>& messages) {
  if (is_control(head.opcode)) {
    messages.push_back({head.opcode, std::string(payload)});
    return;
  }
  if (!fragments_) fragments_ = WebSocketMessage{head.opcode, {}};
  fragments_->payload.append(payload);
  if (!head.final) return;
  messages.push_back(*std::move(fragments_));
  fragments_.reset();
}

Status WebSocketReader::feed(std::string_view bytes, std::vector<WebSocketMessage>& messages) {
  pending_.append(bytes);
  std::size_t at = 0;
  while (true) {
    GANTRY_TRY(const auto head, head_at(at));
    if (!head) break;
    GANTRY_CHECK(check_order(*head));
    if (pending_.size() - at - head->head_bytes < head->payload_bytes) break;
    take(*head, std::string_view(pending_).substr(at + head->head_bytes, head->payload_bytes),
         messages);
    at += head->head_bytes + head->payload_bytes;
  }
  pending_.erase(0, at);
  return {};
}

}  // namespace gantry::http
