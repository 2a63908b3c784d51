// SPDX-License-Identifier: Apache-2.0
#include "net/dns/ip_address.hpp"

#include "base/core/text.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <fmt/format.h>

#include <cstring>

namespace gantry::dns {
namespace {

// The number of an interface by its name or number; nullopt if there is none.
std::optional<std::uint32_t> interface_index(std::string_view text) {
  if (text.empty() || text.size() >= IF_NAMESIZE) return std::nullopt;
  if (const auto index = ::if_nametoindex(std::string(text).c_str()); index != 0) return index;
  const auto number = parse_u64(text);
  if (!number || *number == 0 || *number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (text.size() > INET6_ADDRSTRLEN + IF_NAMESIZE) return std::nullopt;
  IpAddress address;
  if (::inet_pton(AF_INET, std::string(text).c_str(), address.bytes.data()) == 1 &&
      text.find('\0') == std::string_view::npos)
    return address;
  address = {.family = AF_INET6};
  const auto percent = text.find('%');
  const auto number = text.substr(0, percent);
  if (number.find('\0') != std::string_view::npos ||
      ::inet_pton(AF_INET6, std::string(number).c_str(), address.bytes.data()) != 1)
    return std::nullopt;
  if (percent == std::string_view::npos) return address;
  const auto index = interface_index(text.substr(percent + 1));
  if (!index) return std::nullopt;
  address.scope = *index;
  return address;
}

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.family, address.bytes.data(), text.data(), text.size());
  return address.scope == 0 ? text.data() : fmt::format("{}%{}", text.data(), address.scope);
}

SocketAddress socket_address(const IpAddress& address, std::uint16_t port) {
  SocketAddress made;
  if (address.family == AF_INET) {
    sockaddr_in in{.sin_family = AF_INET, .sin_port = htons(port)};
    std::memcpy(&in.sin_addr, address.bytes.data(), sizeof in.sin_addr);
    std::memcpy(&made.storage, &in, sizeof in);
    made.size = sizeof in;
  } else {
    sockaddr_in6 in6{
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = address.scope};
    std::memcpy(&in6.sin6_addr, address.bytes.data(), sizeof in6.sin6_addr);
    std::memcpy(&made.storage, &in6, sizeof in6);
    made.size = sizeof in6;
  }
  return made;
}

}  // namespace gantry::dns
