// SPDX-License-Identifier: Apache-2.0
// GPUs that somebody's own health check takes out of use, by gpushare's contract: ConfigMap
// unhealthy-gpu-NODE of kube-system, whose `gpus` has their indices: "0,3".
#pragma once

#include "base/json/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::podspec {

inline constexpr std::string_view kUnhealthyNamespace = "kube-system";
inline constexpr std::string_view kUnhealthyPrefix = "unhealthy-gpu-";  // and the node's name

struct UnhealthyGpus {
  std::string node;
  std::vector<std::uint32_t> gpus;  // ascending, each once
  std::string ignored;              // a sentence about what is no index; "": all are
  bool operator==(const UnhealthyGpus&) const = default;
};

// nullopt for a ConfigMap of another name. One without `gpus` bars none.
std::optional<UnhealthyGpus> parse_unhealthy_gpus(const json::Value& config_map);

// "ConfigMap kube-system/unhealthy-gpu-NODE", for people.
std::string unhealthy_config_map_name(std::string_view node);
// The node of a ConfigMap of that name; "" for another one.
std::string_view node_of_unhealthy_config_map(std::string_view config_map);

}  // namespace gantry::podspec
