// SPDX-License-Identifier: Apache-2.0
#include "base/sys/unique_fd.hpp"
#include "net/dns/route_order_internal.hpp"

#include <sys/socket.h>

#include <algorithm>

namespace gantry::dns {
namespace {

// Connecting a UDP socket looks up the route and sends nothing.
bool has_route(const IpAddress& address) {
  const sys::UniqueFd socket(::socket(address.family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto target = socket_address(address, 53);
  return socket.valid() && ::connect(socket.get(), target.get(), target.size) == 0;
}

}  // namespace

std::vector<IpAddress> order_by_route(std::vector<IpAddress> addresses) {
  const auto is_ipv6 = [](const IpAddress& one) { return one.family == AF_INET6; };
  const auto ipv4 = std::stable_partition(addresses.begin(), addresses.end(), is_ipv6);
  // Hosts with one kind of address need no look at the routes.
  if (ipv4 != addresses.begin() && ipv4 != addresses.end())
    std::stable_partition(addresses.begin(), addresses.end(), has_route);
  return addresses;
}

}  // namespace gantry::dns
