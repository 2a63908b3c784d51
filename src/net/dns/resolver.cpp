// SPDX-License-Identifier: Apache-2.0
#include "net/dns/resolver.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "net/dns/exchange_internal.hpp"
#include "net/dns/message.hpp"
#include "net/dns/name_files.hpp"
#include "net/dns/route_order_internal.hpp"

#include <sys/random.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace gantry::dns {
namespace {

constexpr IpAddress kLoopbackIpv4{.family = AF_INET, .bytes = {127, 0, 0, 1}};
constexpr IpAddress kLoopbackIpv6{.family = AF_INET6,
                                  .bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// Numbers that nobody can guess: ids of queries. It fails only before the kernel has collected its
// first random bytes.
std::uint16_t random_number() {
  std::uint16_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) GANTRY_ASSERT(errno == EINTR);
  return number;
}

// Names that mean an address by themselves.
std::vector<IpAddress> addresses_without_files(std::string_view name) {
  if (const auto address = parse_ip(name)) return {*address};
  auto lower = to_lower(name);
  if (lower.ends_with('.')) lower.pop_back();
  if (lower == "localhost" || lower.ends_with(".localhost"))
    return order_by_route({kLoopbackIpv6, kLoopbackIpv4});
  return {};
}

// One name that is looked up by DNS.
class Lookup {
 public:
  Lookup(const ResolverConfig& config, const sys::WaitLimit& patience)
      : config_(config), patience_(patience), servers_(config.resolv.name_servers) {
    if (servers_.empty()) servers_.push_back(kLoopbackIpv4);
    if (config.resolv.rotate)
      std::rotate(servers_.begin(), servers_.begin() + random_number() % std::ssize(servers_),
                  servers_.end());
  }

  Result<std::vector<IpAddress>> search(std::string_view name) {
    const auto names = candidate_names(config_.resolv, name);
    std::optional<Error> unanswered;
    for (const auto& full_name : names) {
      auto found = query(full_name);
      if (found.ok() && !found->empty()) return found;
      if (found.ok()) continue;
      // A server that says it cannot answer may know the next name. Servers that say nothing would
      // take their time for every name.
      if (found.error().code() != Errc::Busy) return found;
      unanswered = std::move(found).error();
    }
    if (unanswered) return *std::move(unanswered);
    return Error(Errc::NotFound,
                 fmt::format("no address in /etc/hosts, and none by DNS (servers: {}; names: {})",
                             describe_servers(), fmt::join(names, ", ")));
  }

 private:
  std::vector<Exchange> queries_for(const std::string& name) const {
    std::vector<Exchange> exchanges(1);
    exchanges[0].query = encode_query(random_number(), name, RecordType::A);
    if (config_.resolv.ask_ipv6)
      exchanges.push_back({.query = encode_query(random_number(), name, RecordType::Aaaa)});
    return exchanges;
  }

  // Asks the servers in turn until one has an address, or says that there is none.
  Result<std::vector<IpAddress>> query(const std::string& name) {
    auto exchanges = queries_for(name);
    Error failure(Errc::Timeout, "no time is left to ask a DNS server");
    const auto tries = config_.resolv.attempts * servers_.size();
    for (std::size_t tried = 0; tried < tries; ++tried) {
      if (sys::is_readable(patience_.cancel)) return Error(Errc::Timeout, "asked to stop");
      const auto now = Clock::now();
      if (now >= patience_.deadline) break;
      const auto& server = servers_[tried % servers_.size()];
      ask_server(socket_address(server, config_.port), transport(), exchanges,
                 {.deadline = end_of_attempt(now, tries - tried), .cancel = patience_.cancel});
      const auto failed = std::find_if(exchanges.begin(), exchanges.end(),
                                       [](const Exchange& one) { return one.failure.has_value(); });
      // One kind of address is enough: some servers give no response about AAAA.
      auto found = addresses_in(exchanges);
      if (!found.empty() || failed == exchanges.end()) return found;
      failure = Error(*failed->failure).in(fmt::format("DNS server {}", to_string(server)));
    }
    return failure;
  }

  Transport transport() const { return config_.resolv.use_tcp ? Transport::Tcp : Transport::Udp; }

  Clock::time_point end_of_attempt(Clock::time_point now, std::size_t tries_left) const {
    const auto part = (patience_.deadline - now) / static_cast<std::int64_t>(tries_left);
    return now + std::min<Clock::duration>(part, config_.resolv.timeout);
  }

  std::string describe_servers() const {
    std::vector<std::string> shown;
    for (const auto& server : servers_) shown.push_back(to_string(server));
    return fmt::format("{}", fmt::join(shown, ", "));
  }

  static std::vector<IpAddress> addresses_in(const std::vector<Exchange>& exchanges) {
    std::vector<IpAddress> found;
    for (const auto& one : exchanges) {
      if (one.response)
        found.insert(found.end(), one.response->addresses.begin(), one.response->addresses.end());
    }
    return found;
  }

  const ResolverConfig& config_;
  const sys::WaitLimit& patience_;
  std::vector<IpAddress> servers_;
};

std::string remedy_for(const ResolverConfig& config, Errc failure) {
  const std::string_view without_dns =
      "write its address into /etc/hosts, or use the address in place of the name";
  if (failure != Errc::NotFound || config.unsupported_sources.empty())
    return fmt::format("`cat /etc/resolv.conf` shows the DNS servers; {}", without_dns);
  return fmt::format("/etc/nsswitch.conf also names {}, which Gantry cannot ask: {}",
                     fmt::join(config.unsupported_sources, ", "), without_dns);
}

// A missing file is an empty one. A file that cannot be read is an error: what it says is unknown.
Result<std::string> read_optional(const sys::Host& host, std::string_view path) {
  auto text = host.read(path);
  if (!text.ok() && text.error().code() == Errc::NotFound) return std::string();
  return text;
}

}  // namespace

Result<ResolverConfig> load_resolver_config(const sys::Host& host) {
  ResolverConfig config;
  GANTRY_TRY(const auto resolv, read_optional(host, "/etc/resolv.conf"));
  config.resolv = parse_resolv_conf(resolv);
  if (!config.resolv.has_search) {
    const auto own_name = host.read_value("/proc/sys/kernel/hostname").value_or("");
    const auto dot = own_name.find('.');
    if (dot != std::string::npos && is_host_name(own_name))
      config.resolv.search = {own_name.substr(dot + 1)};
  }
  GANTRY_TRY(config.hosts, read_optional(host, "/etc/hosts"));
  GANTRY_TRY(const auto nsswitch, read_optional(host, "/etc/nsswitch.conf"));
  config.unsupported_sources = unsupported_sources(nsswitch);
  return config;
}

Result<std::vector<IpAddress>> resolve(const ResolverConfig& config, std::string_view name,
                                       const sys::WaitLimit& patience) {
  if (auto found = addresses_without_files(name); !found.empty()) return found;
  const auto without_dot = name.substr(0, name.size() - (name.ends_with('.') ? 1 : 0));
  if (!is_host_name(without_dot))
    return Error(Errc::Invalid,
                 fmt::format("{}: not a host name or an IP address", printable(name)));
  if (auto found = addresses_in_hosts(config.hosts, name); !found.empty())
    return order_by_route(std::move(found));
  auto found = Lookup(config, patience).search(name);
  if (!found.ok()) {
    const auto remedy = remedy_for(config, found.error().code());
    return std::move(found).error().in(name).advise(remedy);
  }
  return order_by_route(*std::move(found));
}

Result<std::vector<IpAddress>> resolve(const sys::Host& host, std::string_view name,
                                       const sys::WaitLimit& patience) {
  if (auto found = addresses_without_files(name); !found.empty()) return found;
  GANTRY_TRY(const auto config, load_resolver_config(host).in(name));
  return resolve(config, name, patience);
}

}  // namespace gantry::dns
