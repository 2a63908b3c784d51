// SPDX-License-Identifier: Apache-2.0
#include "net/dns/resolv_conf.hpp"

#include "base/core/text.hpp"
#include "net/dns/message.hpp"
#include "net/dns/words_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace gantry::dns {
namespace {

// The number behind "ndots:", at most `limit`.
std::optional<unsigned> option_value(std::string_view option, std::string_view name,
                                     unsigned limit) {
  if (!option.starts_with(name)) return std::nullopt;
  const auto value = parse_u64(option.substr(name.size()));
  if (!value) return std::nullopt;
  return static_cast<unsigned>(std::min<std::uint64_t>(*value, limit));
}

// The limits are glibc's: RES_MAXNDOTS, RES_MAXRETRANS, RES_MAXRETRY.
void read_option(ResolvConf& conf, std::string_view option) {
  if (const auto ndots = option_value(option, "ndots:", 15)) conf.ndots = *ndots;
  if (const auto timeout = option_value(option, "timeout:", 30))
    conf.timeout = std::chrono::seconds(std::max(*timeout, 1U));
  if (const auto attempts = option_value(option, "attempts:", 5))
    conf.attempts = std::max(*attempts, 1U);
  if (option == "rotate") conf.rotate = true;
  if (option == "use-vc") conf.use_tcp = true;
  if (option == "no-aaaa") conf.ask_ipv6 = false;
}

void read_search(ResolvConf& conf, std::span<const std::string_view> domains) {
  conf.search.clear();
  conf.has_search = true;
  for (auto domain : domains) {
    if (domain.ends_with('.')) domain.remove_suffix(1);
    if (is_host_name(domain) && conf.search.size() < kMaxSearchDomains)
      conf.search.emplace_back(domain);
  }
}

}  // namespace

ResolvConf parse_resolv_conf(std::string_view text) {
  ResolvConf conf;
  for (const auto line : lines(text)) {
    const auto words = words_of_line(line, "#;");
    if (words.size() < 2) continue;
    const auto values = std::span(words).subspan(1);
    if (words[0] == "nameserver" && conf.name_servers.size() < kMaxServers) {
      if (const auto address = parse_ip(values[0])) conf.name_servers.push_back(*address);
    } else if (words[0] == "search") {
      read_search(conf, values);
    } else if (words[0] == "domain") {
      read_search(conf, values.first(1));
    } else if (words[0] == "options") {
      for (const auto option : values) read_option(conf, option);
    }
  }
  return conf;
}

std::vector<std::string> candidate_names(const ResolvConf& conf, std::string_view name) {
  if (name.ends_with('.')) return {std::string(name.substr(0, name.size() - 1))};
  const auto dots = static_cast<unsigned>(std::count(name.begin(), name.end(), '.'));
  std::vector<std::string> names;
  if (dots >= conf.ndots) names.emplace_back(name);
  for (const auto& domain : conf.search) {
    auto full = fmt::format("{}.{}", name, domain);
    if (is_host_name(full)) names.push_back(std::move(full));
  }
  if (dots < conf.ndots) names.emplace_back(name);
  return names;
}

}  // namespace gantry::dns
