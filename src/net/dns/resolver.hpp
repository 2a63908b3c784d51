// SPDX-License-Identifier: Apache-2.0
// Finds the addresses of a host name as glibc does with `hosts: files dns` in nsswitch.conf, and
// without glibc's shared libraries, which a statically linked program cannot load.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/socket_wait.hpp"
#include "net/dns/ip_address.hpp"
#include "net/dns/resolv_conf.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::dns {

// The configuration of a machine's resolver, from its files.
struct ResolverConfig {
  ResolvConf resolv;
  std::string hosts;                             // /etc/hosts
  std::vector<std::string> unsupported_sources;  // of /etc/nsswitch.conf, for errors
  std::uint16_t port = 53;                       // of all servers; tests have another one
};

// A file that does not exist is an empty one. Without a server in resolv.conf the server is
// 127.0.0.1; without search domains the domain is that of the machine's own name.
Result<ResolverConfig> load_resolver_config(const sys::Host& host);

// The addresses of a name, the best first, never none. An address and "localhost" need no file and
// no server. Each attempt at a server has its part of the time that is left, so that the servers
// behind a silent one are asked, too. NotFound: there is no such name. Timeout: no server answered,
// or the wait was cancelled. Busy: the servers could not answer.
Result<std::vector<IpAddress>> resolve(const ResolverConfig& config, std::string_view name,
                                       const sys::WaitLimit& patience);

// The same with the files of a machine, which are read only if the name needs them.
Result<std::vector<IpAddress>> resolve(const sys::Host& host, std::string_view name,
                                       const sys::WaitLimit& patience);

}  // namespace gantry::dns
