// SPDX-License-Identifier: Apache-2.0
#include "container/oci/device_list.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace gantry::oci {

Result<std::vector<std::string>> parse_list(std::span<const std::string_view> lists) {
  std::vector<std::string> entries;
  std::unordered_set<std::string_view> seen;
  std::size_t bytes = 0;
  for (const auto list : lists) {
    bytes += list.size();
    if (bytes > kMaxListBytes) {
      return Error(Errc::Invalid,
                   fmt::format("the list has more than {} bytes; name fewer devices, or `all`",
                               kMaxListBytes));
    }
    for (auto entry : split(list, ',')) {
      entry = trim(entry);
      if (entry.empty() || !seen.insert(entry).second) continue;
      if (entries.size() == kMaxListEntries) {
        return Error(Errc::Invalid,
                     fmt::format("the list has more than {} entries; name fewer devices, or `all`",
                                 kMaxListEntries));
      }
      entries.emplace_back(entry);
    }
  }
  return entries;
}

Result<std::vector<std::string>> parse_device_list(std::span<const std::string_view> lists) {
  GANTRY_TRY(auto devices, parse_list(lists));
  if (std::find(devices.begin(), devices.end(), "void") != devices.end()) devices.clear();
  const auto whole = std::find_if(devices.begin(), devices.end(), [](const auto& device) {
    return device == "all" || device == "none";
  });
  if (whole != devices.end()) return std::vector<std::string>{*whole};
  return devices;
}

bool is_qualified(std::string_view device) {
  const auto slash = device.find('/');
  const auto equals = device.find('=', slash == std::string_view::npos ? 0 : slash);
  return slash != std::string_view::npos && slash > 0 && equals != std::string_view::npos &&
         equals > slash + 1 && equals + 1 < device.size();
}

QualifiedName split_qualified_name(std::string_view device) {
  const auto equals = device.find('=', device.find('/'));
  return {.kind = device.substr(0, equals), .name = device.substr(equals + 1)};
}

}  // namespace gantry::oci
