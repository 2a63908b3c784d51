// SPDX-License-Identifier: Apache-2.0
#include "net/http/websocket.hpp"

#include "base/core/base64.hpp"
#include "base/core/text.hpp"
#include "net/http/connection_internal.hpp"
#include "net/http/openssl.hpp"
#include "net/http/request_internal.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <utility>

namespace gantry::http {
namespace {

constexpr int kSwitchingProtocols = 101;
constexpr std::size_t kKeyBytes = 16;

Status fill_random(std::uint8_t* bytes, std::size_t count) {
  if (RAND_bytes(bytes, static_cast<int>(count)) != 1) return ssl_failure("random numbers");
  return {};
}

Result<std::string> new_key() {
  std::string nonce(kKeyBytes, '\0');
  GANTRY_CHECK(fill_random(reinterpret_cast<std::uint8_t*>(nonce.data()), nonce.size()));
  return to_base64(nonce);
}

void add_handshake(Request& request, const std::string& key) {
  request.headers.push_back({"Connection", "Upgrade"});
  request.headers.push_back({"Upgrade", "websocket"});
  request.headers.push_back({"Sec-WebSocket-Version", "13"});
  request.headers.push_back({"Sec-WebSocket-Key", key});
}

struct Answer {
  ResponseReader head;
  std::string body;  // of a refusal
  WebSocketReader frames;
  std::vector<WebSocketMessage> messages;  // that came with the head
};

Status read_answer(Connection& connection, Answer& answer, Deadline deadline) {
  auto& head = answer.head;
  while (!head.done()) {
    GANTRY_TRY(const auto bytes, connection.read(deadline));
    if (bytes.empty()) return head.end();
    // After the head of 101, what follows in the same packet are frames: byte by byte up to there.
    std::size_t at = 0;
    while (at < bytes.size() && !(head.done() && head.status() == kSwitchingProtocols))
      GANTRY_CHECK(head.feed(std::string_view(bytes).substr(at++, 1), answer.body));
    if (answer.body.size() > kBodyLimit) return too_large();
    GANTRY_CHECK(answer.frames.feed(std::string_view(bytes).substr(at), answer.messages));
  }
  return {};
}

// What a server that speaks WebSocket answers to `key`: RFC 6455, section 4.2.2.
Result<std::string> accept_for(const std::string& key) {
  const auto text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1)
    return ssl_failure("SHA-1");
  return to_base64({reinterpret_cast<const char*>(digest.data()), size});
}

Status check_accepted(const ResponseReader& answer, const std::string& key) {
  const auto says = [&](std::string_view name, std::string_view wanted) {
    const auto* value = find(answer.headers(), name);
    return value != nullptr && to_lower(*value) == wanted;
  };
  GANTRY_TRY(const auto wanted, accept_for(key));
  const auto* accept = find(answer.headers(), "Sec-WebSocket-Accept");
  const bool proved = accept != nullptr && *accept == wanted && says("Upgrade", "websocket");
  if (!proved)
    return Error(Errc::Corrupt, "the server says 101, but does not answer WebSocket's key");
  if (find(answer.headers(), "Sec-WebSocket-Extensions") != nullptr ||
      find(answer.headers(), "Sec-WebSocket-Protocol") != nullptr)
    return Error(Errc::Corrupt, "the server chose an extension or a protocol that was not offered");
  return {};
}

}  // namespace

WebSocket::WebSocket(std::unique_ptr<Connection> connection, WebSocketReader reader,
                     std::vector<WebSocketMessage> received)
    : connection_(std::move(connection)),
      reader_(std::move(reader)),
      received_(std::make_move_iterator(received.begin()),
                std::make_move_iterator(received.end())) {}
WebSocket::~WebSocket() = default;
WebSocket::WebSocket(WebSocket&&) noexcept = default;
WebSocket& WebSocket::operator=(WebSocket&&) noexcept = default;

Status WebSocket::send(Opcode opcode, std::string_view payload, Deadline deadline) {
  FrameMask mask{};
  GANTRY_CHECK(fill_random(mask.data(), mask.size()));
  return connection_->write(client_frame(opcode, payload, mask), deadline);
}

Status WebSocket::send_text(std::string_view text, Deadline deadline) {
  return send(Opcode::Text, text, deadline);
}

Result<std::optional<std::string>> WebSocket::read(Deadline deadline) {
  while (true) {
    while (!received_.empty()) {
      auto message = std::move(received_.front());
      received_.pop_front();
      if (message.opcode == Opcode::Text) return std::optional(std::move(message.payload));
      if (message.opcode == Opcode::Ping)
        GANTRY_CHECK(send(Opcode::Pong, message.payload, deadline));
      if (message.opcode == Opcode::Close) {
        (void)send(Opcode::Close, message.payload, deadline);  // the peer may be gone by now
        return std::optional<std::string>();
      }
    }
    GANTRY_TRY(const auto bytes, connection_->read(deadline));
    if (bytes.empty()) return std::optional<std::string>();
    std::vector<WebSocketMessage> messages;
    GANTRY_CHECK(reader_.feed(bytes, messages));
    for (auto& message : messages) received_.push_back(std::move(message));
  }
}

Result<Upgrade> open_websocket(const Endpoint& endpoint, Request request,
                               std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  GANTRY_TRY(const auto key, new_key());
  add_handshake(request, key);
  GANTRY_CHECK(check_head(request));
  GANTRY_TRY(auto connection, connect(endpoint, deadline));
  GANTRY_CHECK(connection->write(format_request(request, endpoint), deadline));
  Answer answer;
  GANTRY_CHECK(read_answer(*connection, answer, deadline));
  if (answer.head.status() != kSwitchingProtocols)
    return Upgrade(Response{.status = answer.head.status(),
                            .headers = answer.head.headers(),
                            .body = std::move(answer.body)});
  GANTRY_CHECK(check_accepted(answer.head, key));
  return Upgrade(
      WebSocket(std::move(connection), std::move(answer.frames), std::move(answer.messages)));
}

}  // namespace gantry::http
