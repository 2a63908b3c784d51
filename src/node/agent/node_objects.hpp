// SPDX-License-Identifier: Apache-2.0
// What the agent tells the API server, as JSON texts. Pure.
#pragma once

#include "gpu/health/health.hpp"
#include "gpu/model/advertised.hpp"
#include "net/kube/event.hpp"
#include "node/labels/labels.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::agent {

inline constexpr std::string_view kCondition = "GPUsHealthy";

using kube::format_utc;

// For server-side apply: labels that we set earlier and that are not in here any more go away.
std::string node_with_labels(const std::string& node, const labels::Labels& labels);

// Which GPU, what happened, what helps; for the log too.
std::string describe(const health::HealthNotice& notice);

// A core/v1 Event about the node. `number` makes its name unique among those of the same moment.
std::string node_event(const std::string& node, const health::HealthNotice& notice,
                       unsigned number);

// status.conditions[GPUsHealthy], for a strategic merge patch of a node's status.
std::string health_condition(const std::vector<model::DeviceHealth>& health, std::int64_t now_s,
                             std::int64_t changed_s);

}  // namespace gantry::agent
