// SPDX-License-Identifier: Apache-2.0
// The rules of AppArmor in docs/vm.md for a service that runs `gantry vfio bind` itself.
#pragma once

#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::test {

// "*" stays in a directory, "**" does not. As a whole name they are not empty: "/run/gantry/*" is
// not the directory itself.
inline bool allows(std::string_view rule, std::string_view path, bool after_slash = false) {
  if (rule.empty()) return path.empty();
  if (rule.starts_with("*")) {
    const bool deep = rule.starts_with("**");
    const auto rest = rule.substr(deep ? 2 : 1);
    const bool whole_name = after_slash && (rest.empty() || rest.front() == '/');
    for (std::size_t n = whole_name ? 1 : 0; n <= path.size(); ++n) {
      if (allows(rest, path.substr(n))) return true;
      if (n < path.size() && path[n] == '/' && !deep) return false;
    }
    return false;
  }
  return !path.empty() && rule.front() == path.front() &&
         allows(rule.substr(1), path.substr(1), rule.front() == '/');
}

inline bool any_allows(const std::vector<std::string>& rules, const std::string& path) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const std::string& rule) { return allows(rule, path); });
}

// The rules that allow writing below one of these directories.
inline std::vector<std::string> write_rules(const std::vector<std::string>& below) {
  const auto page = sys::Host::at(source_dir())->read("/docs/vm.md").value_or("");
  std::vector<std::string> rules;
  const auto list = page.find("files that it writes, with the temporary");
  if (list == std::string::npos) return rules;
  for (const auto line : lines(std::string_view(page).substr(list))) {
    const auto words = split(line, ' ');
    if (words.size() != 2 || words[1].find('w') == std::string_view::npos) continue;
    if (std::any_of(below.begin(), below.end(),
                    [&](const std::string& directory) { return words[0].starts_with(directory); }))
      rules.emplace_back(words[0]);
  }
  return rules;
}

}  // namespace gantry::test
