// SPDX-License-Identifier: Apache-2.0
// The lists in which containers name devices: NVIDIA_VISIBLE_DEVICES and its relatives.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::oci {

// Comma-separated lists joined: trimmed, without empties and duplicates. `void` anywhere empties
// the whole list; otherwise the first `all` or `none` stands for the whole list.
std::vector<std::string> parse_device_list(std::span<const std::string_view> lists);

// vendor/class=name, the name of a CDI device.
struct QualifiedName {
  std::string_view kind;  // "nvidia.com/gpu"
  std::string_view name;
};
bool is_qualified(std::string_view device);
QualifiedName qualified_parts(std::string_view device);  // of a qualified one

}  // namespace gantry::oci
