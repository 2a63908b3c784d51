// SPDX-License-Identifier: Apache-2.0
// Reads the annotations and labels of a pod that concern its GPUs.
#pragma once

#include "cluster/podspec/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::podspec {

inline constexpr std::string_view kCompute = "gantry.dev/compute";
inline constexpr std::string_view kGpus = "gantry.dev/gpus";
inline constexpr std::string_view kNear = "gantry.dev/near";
inline constexpr std::string_view kNodes = "gantry.dev/nodes";
inline constexpr std::string_view kGpusOrder = "gantry.dev/gpus-order";
inline constexpr std::string_view kPriority = "gantry.dev/priority";

// "" if it does not exist. Invalid if it is not a string.
Result<std::string> annotation(const json::Value& pod, std::string_view key);

Result<Affinity> parse_affinity(const json::Value& pod);

// Returns "low", "normal", "high" or "".
Result<std::string> parse_share_priority(const json::Value& pod);

// A number from the pod's annotation for one container (KEY.CONTAINER) or for all containers (KEY).
Result<std::optional<std::uint64_t>> number_annotation(const json::Value& pod, std::string_view key,
                                                       std::string_view container,
                                                       std::uint64_t most);

}  // namespace gantry::podspec
