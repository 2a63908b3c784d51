// SPDX-License-Identifier: Apache-2.0
// /etc/resolv.conf, read as glibc reads it (resolv.conf(5)).
#pragma once

#include "net/dns/ip_address.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::dns {

// glibc's limits. The kubelet writes at most 32 domains.
inline constexpr std::size_t kMaxServers = 3;
inline constexpr std::size_t kMaxSearchDomains = 32;

struct ResolvConf {
  std::vector<IpAddress> name_servers;
  std::vector<std::string> search;
  bool has_search = false;  // `search .` has no domain, but replaces the domain of the host's name
  unsigned ndots = 1;
  std::chrono::seconds timeout{5};  // of one attempt at one server
  unsigned attempts = 2;            // of each server
  bool rotate = false;              // begin with a random server
  bool use_tcp = false;             // the option use-vc
  bool ask_ipv6 = true;             // false: the option no-aaaa
  bool operator==(const ResolvConf&) const = default;
};

// Lines, options and addresses that it does not know have no effect, as in glibc. edns0 and
// trust-ad have none either: a long answer comes by TCP, and nobody here asks about DNSSEC.
ResolvConf parse_resolv_conf(std::string_view text);

// The names to ask for, in their order. A name with fewer than ndots dots is first tried in the
// search domains; a final dot means that the name is complete.
std::vector<std::string> candidate_names(const ResolvConf& conf, std::string_view name);

}  // namespace gantry::dns
