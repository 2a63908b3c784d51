// SPDX-License-Identifier: Apache-2.0
// An IPv4 or IPv6 address as a value.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::dns {

struct IpAddress {
  sa_family_t family = AF_INET;
  std::array<unsigned char, 16> bytes{};  // in network order; AF_INET has the first 4
  std::uint32_t scope = 0;                // the interface of a link-local IPv6 address
  bool operator==(const IpAddress&) const = default;
};

// "10.0.0.1", "::1", "fe80::1%eth0" or "fe80::1%2"; nullopt if the interface does not exist. Of
// IPv4 only the form with four numbers: 10.1 and 0x0a000001 are names.
std::optional<IpAddress> parse_ip(std::string_view text);
std::string to_string(const IpAddress& address);

inline constexpr IpAddress kAnyIpv6{.family = AF_INET6};
inline constexpr IpAddress kAnyIpv4{.family = AF_INET};

// What connect and bind take.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress socket_address(const IpAddress& address, std::uint16_t port);

}  // namespace gantry::dns
