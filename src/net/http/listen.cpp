// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "net/dns/ip_address.hpp"
#include "net/http/listen_internal.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace gantry::http {
namespace {

Result<sys::UniqueFd> socket_at(const dns::SocketAddress& address) {
  const int family = address.storage.ss_family;
  sys::UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::sys(errno, "socket");
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), address.get(), address.size) != 0 || ::listen(socket.get(), 64) != 0) {
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

// "" is all addresses: IPv6 first, which takes IPv4 callers too, because pods of an IPv6 cluster
// have no other address.
Result<std::vector<dns::IpAddress>> addresses_of(std::string_view host) {
  if (host.empty()) return std::vector{dns::kAnyIpv6, dns::kAnyIpv4};
  const auto address = dns::parse_ip(host);
  if (!address) return Error(Errc::Invalid, "an address to listen at is an IP address, not a name");
  return std::vector{*address};
}

Result<sys::UniqueFd> first_socket(const Address& address) {
  GANTRY_TRY(const auto candidates, addresses_of(address.host));
  Error last(Errc::NotFound, "no address");
  for (const auto& candidate : candidates) {
    auto socket = socket_at(dns::socket_address(candidate, address.port));
    if (socket.ok()) return socket;
    last = std::move(socket).error();
  }
  return last;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  sockaddr_in in{};  // IPv6 has its port at the same place
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&in, &bound, sizeof in);
  return ntohs(in.sin_port);
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
  GANTRY_TRY(auto socket,
             first_socket(address).in(fmt::format("{}:{}", address.host, address.port)));
  const auto port = port_of(socket.get());
  return Listener{.socket = std::move(socket), .port = port};
}

}  // namespace gantry::http
