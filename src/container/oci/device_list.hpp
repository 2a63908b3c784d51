// SPDX-License-Identifier: Apache-2.0
// The lists in which containers name devices: NVIDIA_VISIBLE_DEVICES and similar variables. They
// can come from an image, so their length is limited.
#pragma once

#include "base/core/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::oci {

constexpr std::size_t kMaxListBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxListEntries = 1024;

// Joins comma-separated lists: trims the items, drops empty ones and duplicates, keeps the order.
// Invalid if the list is longer than any machine needs.
Result<std::vector<std::string>> parse_list(std::span<const std::string_view> lists);

// The same for devices: `void` anywhere empties the list; otherwise the first `all` or `none`
// replaces the whole list.
Result<std::vector<std::string>> parse_device_list(std::span<const std::string_view> lists);

// The name of a CDI device: vendor/class=name.
struct QualifiedName {
  std::string_view kind;  // "nvidia.com/gpu"
  std::string_view name;
};
bool is_qualified(std::string_view device);
QualifiedName split_qualified_name(std::string_view device);  // `device` must be qualified

}  // namespace gantry::oci
