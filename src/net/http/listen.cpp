// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "net/http/listen_internal.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <memory>

namespace gantry::http {
namespace {

Result<sys::UniqueFd> socket_at(const addrinfo& address) {
  sys::UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), 64) != 0) {
    const int why = errno;
    const auto failed = Error::sys(why, "listen");
    if (why != EADDRINUSE) return failed;
    return Error(failed.code(),
                 failed.text() +
                     "; `ss -ltnp` shows which program has this port: end that one, or "
                     "take another port");
  }
  return socket;
}

// IPv6 first, which takes IPv4 callers too: pods of an IPv6 cluster have no other address.
Result<sys::UniqueFd> first_socket(const addrinfo* list) {
  Error last(Errc::NotFound, "no address");
  for (const int family : {AF_INET6, AF_INET}) {
    for (const auto* address = list; address != nullptr; address = address->ai_next) {
      if (address->ai_family != family) continue;
      auto socket = socket_at(*address);
      if (socket.ok()) return socket;
      last = std::move(socket).error();
    }
  }
  return last;
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : parse_u64(text.substr(colon + 1));
  if (!port || *port > 65535)
    return Error(Errc::Invalid, fmt::format("{}: not of the form [ADDRESS]:PORT", text));
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Address{.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

Result<Listener> listen_at(const Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const auto shown = fmt::format("{}:{}", address.host, address.port);
  const int bad = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                fmt::to_string(address.port).c_str(), &hints, &list);
  if (bad != 0) return Error(Errc::Invalid, fmt::format("{}: {}", shown, ::gai_strerror(bad)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(list, ::freeaddrinfo);
  GANTRY_TRY(auto socket, first_socket(list).in(shown));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  std::array<char, 8> port{};
  ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                NI_NUMERICSERV);
  return Listener{.socket = std::move(socket),
                  .port = static_cast<std::uint16_t>(parse_u64(port.data()).value_or(0))};
}

}  // namespace gantry::http
