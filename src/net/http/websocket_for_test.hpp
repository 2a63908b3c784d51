// SPDX-License-Identifier: Apache-2.0
// A server of one connection at a time that a test scripts byte by byte, WebSocket included.
#pragma once

#include "base/core/base64.hpp"
#include "net/http/client.hpp"
#include "net/http/listen_internal.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace gantry::http {

// The peer's end of one connection.
class ScriptedSocket {
 public:
  explicit ScriptedSocket(int fd) : fd_(fd) {}

  bool write(std::string_view bytes) const {  // false when the client closed
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  }
  std::string read() const {  // "" when the client closed
    std::string text(65536, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::recv(fd_, text.data(), text.size(), 0), 0)));
    return text;
  }
  std::string read_head() const {
    std::string head;
    for (auto more = read(); !more.empty(); more = read()) {
      head += more;
      if (head.ends_with("\r\n\r\n")) break;
    }
    return head;
  }
  // One frame of the client, unmasked.
  std::string read_frame() const {
    const auto bytes = read();
    if (bytes.size() < 6) return bytes;
    const auto length = static_cast<std::uint8_t>(bytes[1]) & 0x7fU;
    const std::size_t mask = length == 126 ? 4 : 2;
    std::string payload = bytes.substr(std::min(mask + 4, bytes.size()));
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] ^= bytes[mask + i % 4];
    return payload;
  }
  void write_frame(std::uint8_t first, std::string_view payload) const {
    std::string frame{static_cast<char>(first)};
    if (payload.size() < 126) {
      frame += static_cast<char>(payload.size());
    } else {
      frame += '\x7e';
      frame += static_cast<char>(payload.size() >> 8U);
      frame += static_cast<char>(payload.size());
    }
    write(frame.append(payload));
  }

 private:
  int fd_;
};

inline std::string header_in(std::string_view head, std::string_view name) {
  const auto begin = head.find(fmt::format("\r\n{}: ", name));
  if (begin == std::string_view::npos) return "";
  const auto value = head.substr(begin + name.size() + 4);
  return std::string(value.substr(0, value.find("\r\n")));
}

// The answer of a server that takes the upgrade.
inline std::string switching_protocols(std::string_view head) {
  const auto text = header_in(head, "Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return fmt::format(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: {}\r\n\r\n",
      to_base64({reinterpret_cast<const char*>(digest.data()), size}));
}

class ScriptedPeer {
 public:
  using Script = std::function<void(const ScriptedSocket&)>;
  explicit ScriptedPeer(Script script) : script_(std::move(script)) {
    auto listener = listen_at({.host = "127.0.0.1"});
    GANTRY_ASSERT(listener.ok());
    listener_ = *std::move(listener);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedPeer() {
    ::shutdown(listener_.socket.get(), SHUT_RDWR);
    thread_.join();
  }
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  Endpoint endpoint() const {
    return {.host = "127.0.0.1", .port = listener_.port, .secure = false};
  }

 private:
  void serve() {
    while (true) {
      pollfd waiting{.fd = listener_.socket.get(), .events = POLLIN, .revents = 0};
      ::poll(&waiting, 1, -1);
      const sys::UniqueFd client(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      script_(ScriptedSocket(client.get()));
    }
  }

  Script script_;
  Listener listener_;
  std::thread thread_;
};

}  // namespace gantry::http
