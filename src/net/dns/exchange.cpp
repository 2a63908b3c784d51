// SPDX-License-Identifier: Apache-2.0
#include "net/dns/exchange_internal.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

namespace gantry::dns {
namespace {

// Messages that answer nothing: somebody guesses, or an earlier query is answered late.
constexpr int kMaxStrayMessages = 64;

bool any_waiting(std::span<const Exchange> exchanges) {
  return std::any_of(exchanges.begin(), exchanges.end(),
                     [](const Exchange& one) { return one.is_waiting(); });
}

void fail_waiting(std::span<Exchange> exchanges, const Error& failure) {
  for (auto& one : exchanges)
    if (one.is_waiting()) one.failure = failure;
}

// Gives a message to the exchange that it answers; false if there is none.
bool deliver(std::span<Exchange> exchanges, std::string_view message) {
  for (auto& one : exchanges) {
    if (!one.is_waiting() || !is_response_to(message, one.query)) continue;
    auto response = parse_response(message, one.query);
    if (response.ok()) {
      one.response = *std::move(response);
    } else {
      one.failure = std::move(response).error();
    }
    return true;
  }
  return false;
}

Status ask_by_udp(const SocketAddress& server, std::span<Exchange> exchanges,
                  const sys::WaitLimit& patience) {
  // A socket of its own for each attempt has a source port that the kernel chooses at random, and a
  // connected one gets datagrams of this server only, and learns that nothing listens there.
  const sys::UniqueFd socket(
      ::socket(server.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  if (::connect(socket.get(), server.get(), server.size) != 0) return Error::sys(errno, "connect");
  for (const auto& one : exchanges)
    if (one.is_waiting()) GANTRY_CHECK(sys::send_all(socket.get(), one.query, patience));
  std::string buffer(kMaxMessageSize, '\0');
  int stray = 0;
  while (any_waiting(exchanges)) {
    GANTRY_TRY(const auto size, sys::receive(socket.get(), buffer, patience));
    if (!deliver(exchanges, std::string_view(buffer).substr(0, size)) &&
        ++stray == kMaxStrayMessages)
      return Error(Errc::Corrupt, "the server sends messages that answer no query");
  }
  return {};
}

// A message with its length in front, as TCP has them.
std::string framed(std::string_view message) {
  std::string frame{static_cast<char>(message.size() >> 8), static_cast<char>(message.size())};
  return frame.append(message);
}

// Cuts the first whole message from what was received; nullopt if more bytes are needed.
std::optional<std::string> take_message(std::string& received) {
  if (received.size() < 2) return std::nullopt;
  const auto size = std::size_t{static_cast<unsigned char>(received[0])} << 8 |
                    static_cast<unsigned char>(received[1]);
  if (received.size() < 2 + size) return std::nullopt;
  auto message = received.substr(2, size);
  received.erase(0, 2 + size);
  return message;
}

Status ask_by_tcp(const SocketAddress& server, std::span<Exchange> exchanges,
                  const sys::WaitLimit& patience) {
  GANTRY_TRY(const auto socket, sys::connect_stream(server.get(), server.size, patience));
  std::string queries;
  for (const auto& one : exchanges)
    if (one.is_waiting()) queries += framed(one.query);
  GANTRY_CHECK(sys::send_all(socket.get(), queries, patience));
  std::string buffer(kMaxMessageSize, '\0');
  std::string received;
  int stray = 0;
  while (any_waiting(exchanges)) {
    if (const auto message = take_message(received)) {
      if (!deliver(exchanges, *message) && ++stray == kMaxStrayMessages)
        return Error(Errc::Corrupt, "the server sends messages that answer no query");
      continue;
    }
    GANTRY_TRY(const auto size, sys::receive(socket.get(), buffer, patience));
    if (size == 0) return Error(Errc::Corrupt, "the server closed the connection");
    received.append(buffer, 0, size);
  }
  return {};
}

bool is_truncated(const Exchange& one) {
  return one.response && one.response->is_truncated;
}

}  // namespace

void ask_server(const SocketAddress& server, Transport transport, std::span<Exchange> exchanges,
                const sys::WaitLimit& patience) {
  for (auto& one : exchanges) one.failure.reset();
  if (transport == Transport::Udp) {
    const auto asked = ask_by_udp(server, exchanges, patience);
    if (!asked.ok()) fail_waiting(exchanges, asked.error());
    if (std::none_of(exchanges.begin(), exchanges.end(), is_truncated)) return;
    for (auto& one : exchanges)
      if (is_truncated(one)) one.response.reset();
  }
  const auto asked = ask_by_tcp(server, exchanges, patience);
  if (!asked.ok()) fail_waiting(exchanges, asked.error());
  for (auto& one : exchanges) {
    if (!is_truncated(one)) continue;
    one.response.reset();
    one.failure = Error(Errc::Corrupt, "the server truncates its response by TCP, too");
  }
}

}  // namespace gantry::dns
