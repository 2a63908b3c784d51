// SPDX-License-Identifier: Apache-2.0
#include "net/dns/name_files.hpp"

#include "base/core/text.hpp"
#include "net/dns/words_internal.hpp"

#include <strings.h>

#include <algorithm>
#include <iterator>

namespace gantry::dns {
namespace {

constexpr std::size_t kMaxNameSources = 16;

bool is_same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// What decides about a source, "[NOTFOUND=return]" or "[ !UNAVAIL=return ]", is not a source.
std::string without_brackets(std::string_view text) {
  std::string kept;
  bool inside = false;
  for (const char c : text) {
    if (c == '[') inside = true;
    kept += inside ? ' ' : c;
    if (c == ']') inside = false;
  }
  return kept;
}

}  // namespace

std::vector<IpAddress> addresses_in_hosts(std::string_view hosts, std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::vector<IpAddress> found;
  for (const auto line : lines(hosts)) {
    const auto words = words_of_line(line, "#");
    if (words.empty()) continue;
    const bool named = std::any_of(std::next(words.begin()), words.end(),
                                   [&](std::string_view word) { return is_same_name(word, name); });
    if (!named) continue;
    if (const auto address = parse_ip(words[0])) found.push_back(*address);
    if (found.size() == kMaxAddresses) break;
  }
  return found;
}

std::vector<std::string> unsupported_sources(std::string_view nsswitch) {
  std::vector<std::string> found;
  for (const auto line : lines(nsswitch)) {
    auto text = trim(line);
    if (!text.starts_with("hosts:")) continue;
    text.remove_prefix(std::string_view("hosts:").size());
    const auto sources = without_brackets(text);
    for (const auto source : words_of_line(sources, "#")) {
      if (source != "files" && source != "dns" && found.size() < kMaxNameSources)
        found.emplace_back(source);
    }
  }
  return found;
}

}  // namespace gantry::dns
