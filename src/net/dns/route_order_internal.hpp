// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/dns/ip_address.hpp"

#include <vector>

namespace gantry::dns {

// Addresses that this machine has a route to come first, and of those IPv6. This is the part of RFC
// 6724 that matters to a client of few servers: a machine without IPv6 does not wait for an IPv6
// address first.
std::vector<IpAddress> order_by_route(std::vector<IpAddress> addresses);

}  // namespace gantry::dns
