// SPDX-License-Identifier: Apache-2.0
// The lists in which containers name devices: NVIDIA_VISIBLE_DEVICES and its relatives. An image's
// author writes them, so they have bounds.
#pragma once

#include "base/core/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::oci {

constexpr std::size_t kMaxListBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxListEntries = 1024;

// Comma-separated lists joined: trimmed, without empties and duplicates, in their order. Invalid
// when they are longer than any machine could need.
Result<std::vector<std::string>> parse_list(std::span<const std::string_view> lists);

// The same as devices: `void` anywhere empties the whole list; otherwise the first `all` or `none`
// stands for the whole list.
Result<std::vector<std::string>> parse_device_list(std::span<const std::string_view> lists);

// vendor/class=name, the name of a CDI device.
struct QualifiedName {
  std::string_view kind;  // "nvidia.com/gpu"
  std::string_view name;
};
bool is_qualified(std::string_view device);
QualifiedName split_qualified_name(std::string_view device);  // of a qualified one

}  // namespace gantry::oci
