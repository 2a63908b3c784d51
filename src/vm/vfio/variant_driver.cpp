// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/variant_driver.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::vfio {
namespace {

constexpr std::size_t kMaxAliases = 4096;
constexpr std::size_t kMaxPattern = 256;

auto wildcards(std::string_view pattern) {
  return std::count(pattern.begin(), pattern.end(), '*');
}

}  // namespace

std::vector<VfioAlias> parse_vfio_aliases(std::string_view modules_alias) {
  constexpr std::string_view kStart = "alias vfio_pci:";
  std::vector<VfioAlias> aliases;
  for (const auto line : lines(modules_alias)) {
    if (!line.starts_with(kStart) || aliases.size() == kMaxAliases) continue;
    const auto words = split(trim(line), ' ');
    if (words.size() != 3 || words[1].size() > kMaxPattern || words[2].empty()) continue;
    aliases.push_back({std::string(words[1]), std::string(words[2])});
  }
  return aliases;
}

std::string choose_vfio_module(const std::vector<VfioAlias>& aliases, std::string_view modalias) {
  const auto wanted = fmt::format("vfio_{}", modalias);
  const VfioAlias* best = nullptr;
  for (const auto& alias : aliases) {
    if (!glob_match(alias.pattern, wanted)) continue;
    if (best == nullptr || wildcards(alias.pattern) < wildcards(best->pattern)) best = &alias;
  }
  return best == nullptr ? "vfio_pci" : module_name(best->module);
}

std::string module_name(std::string_view driver) {
  std::string name(driver);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool same_driver(std::string_view a, std::string_view b) {
  return module_name(a) == module_name(b);
}

std::string module_of(std::string_view driver) {
  return driver == kNvSwitchDriver ? "nvidia" : module_name(driver);
}

std::string expected_driver(std::string_view module) {
  return module == "vfio_pci" ? "vfio-pci" : std::string(module);
}

}  // namespace gantry::vfio
