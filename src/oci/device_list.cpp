// SPDX-License-Identifier: Apache-2.0
#include "oci/device_list.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace gantry::oci {

std::vector<std::string> parse_device_list(std::span<const std::string_view> lists) {
  std::vector<std::string> devices;
  for (const auto list : lists) {
    for (auto entry : split(list, ',')) {
      entry = trim(entry);
      if (entry.empty()) continue;
      if (entry == "void") return {};
      if (std::find(devices.begin(), devices.end(), entry) == devices.end()) {
        devices.emplace_back(entry);
      }
    }
  }
  const auto whole = std::find_if(devices.begin(), devices.end(), [](const auto& device) {
    return device == "all" || device == "none";
  });
  if (whole != devices.end()) return {*whole};
  return devices;
}

bool is_qualified(std::string_view device) {
  const auto slash = device.find('/');
  const auto equals = device.find('=', slash == std::string_view::npos ? 0 : slash);
  return slash != std::string_view::npos && slash > 0 && equals != std::string_view::npos &&
         equals > slash + 1 && equals + 1 < device.size();
}

QualifiedName qualified_parts(std::string_view device) {
  const auto equals = device.find('=', device.find('/'));
  return {.kind = device.substr(0, equals), .name = device.substr(equals + 1)};
}

}  // namespace gantry::oci
