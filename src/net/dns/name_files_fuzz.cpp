// SPDX-License-Identifier: Apache-2.0
// One text as resolv.conf, as hosts and as nsswitch.conf.
#include "net/dns/message.hpp"
#include "net/dns/name_files.hpp"
#include "net/dns/resolv_conf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto conf = gantry::dns::parse_resolv_conf(text);
  GANTRY_ASSERT(conf.name_servers.size() <= gantry::dns::kMaxServers);
  GANTRY_ASSERT(conf.search.size() <= gantry::dns::kMaxSearchDomains);
  for (const auto& name : gantry::dns::candidate_names(conf, "kubernetes.default.svc"))
    GANTRY_ASSERT(gantry::dns::is_host_name(name));
  GANTRY_ASSERT(gantry::dns::addresses_in_hosts(text, "a").size() <= gantry::dns::kMaxAddresses);
  (void)gantry::dns::unsupported_sources(text);
  return 0;
}
