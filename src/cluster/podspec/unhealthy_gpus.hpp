// SPDX-License-Identifier: Apache-2.0
// GPUs that an external health check marks as unhealthy, by gpushare's contract: a ConfigMap
// unhealthy-gpu-NODE in kube-system, with the indexes in `gpus`: "0,3".
#pragma once

#include "base/json/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kUnhealthyNamespace = "kube-system";
// Followed by the node's name.
inline constexpr std::string_view kUnhealthyPrefix = "unhealthy-gpu-";

struct UnhealthyGpus {
  std::string node;
  std::vector<std::uint32_t> gpus;  // ascending, without duplicates
  std::string ignored;  // a sentence about entries that are not indexes; "": there are none
  bool operator==(const UnhealthyGpus&) const = default;
};

// nullopt for a ConfigMap with another name. A ConfigMap without `gpus` marks no GPU.
std::optional<UnhealthyGpus> parse_unhealthy_gpus(const json::Value& config_map);

// "ConfigMap kube-system/unhealthy-gpu-NODE", for messages.
std::string unhealthy_config_map_name(std::string_view node);
// The node of a ConfigMap with such a name; "" for another name.
std::string_view node_of_unhealthy_config_map(std::string_view config_map);

}  // namespace gantry::podspec
