// SPDX-License-Identifier: Apache-2.0
// A log of the events and the decisions of a Cluster, one line for each step. The same steps always
// give the same state, so that a decision can be examined afterwards.
#pragma once

#include "cluster/placement/cluster.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::placement {

struct LogEntry {
  enum class Kind : std::uint8_t {
    Start,  // with nothing
    Node,
    NodeGone,
    Pod,  // has a node
    PodGone,
    Quota,
    Reserve,  // the decision is in `placement`; none: refused
    Release
  };
  Kind kind = Kind::Start;
  std::string name;         // of the node; of the namespace for Quota; uid for PodGone and Release
  podspec::NodeInfo facts;  // Node
  podspec::PodRequest ask;  // Pod, Reserve
  std::optional<podspec::Placement> placement;
  Quota quota;
  bool operator==(const LogEntry&) const;
};

std::string to_string(const LogEntry& step);              // a line of JSON, without its end
Result<LogEntry> parse_log_entry(std::string_view line);  // Corrupt if it is not a log entry

// Repeats a step. Internal, with both decisions, if the decision differs.
Status replay(Cluster& cluster, const LogEntry& step);

// The whole visible state of a cluster, to compare two of them.
std::string to_string(const Cluster& cluster);

}  // namespace gantry::placement
