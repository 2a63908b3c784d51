// SPDX-License-Identifier: Apache-2.0
// The other files that tell a machine what a name means: /etc/hosts and /etc/nsswitch.conf.
#pragma once

#include "net/dns/ip_address.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::dns {

inline constexpr std::size_t kMaxAddresses = 64;  // of one name

// The addresses of a name in /etc/hosts, in their order. The case of letters does not matter.
std::vector<IpAddress> addresses_in_hosts(std::string_view hosts, std::string_view name);

// The sources of host names in /etc/nsswitch.conf that need a shared library of glibc, such as
// mdns4_minimal, resolve or sss. Gantry is linked statically and has only `files` and `dns`.
std::vector<std::string> unsupported_sources(std::string_view nsswitch);

}  // namespace gantry::dns
