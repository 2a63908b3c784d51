// SPDX-License-Identifier: Apache-2.0
// The objects that the agent sends to the API server, as JSON texts. Pure.
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

// For server-side apply: removes labels that we set earlier and that are missing here.
std::string node_with_labels(const std::string& node, const labels::Labels& labels);

// Names the GPU, the event and the remedy. Also used for the log.
std::string describe(const health::HealthNotice& notice);

// A core/v1 Event about the node. `number` makes its name unique among events of the same moment.
std::string node_event(const std::string& node, const health::HealthNotice& notice,
                       unsigned number);

struct NodeCondition {
  std::string_view type;
  std::string_view status;
  std::string reason;
  std::string message;
  std::int64_t seen_s = 0;
  std::int64_t changed_s = 0;
};
// A strategic merge patch of the node's status.
std::string to_patch(const NodeCondition& condition);

// status.conditions[GPUsHealthy], as a strategic merge patch of the node's status.
std::string health_condition(const std::vector<model::DeviceHealth>& health, std::int64_t now_s,
                             std::int64_t changed_s);

}  // namespace gantry::agent
