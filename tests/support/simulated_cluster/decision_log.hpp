// SPDX-License-Identifier: Apache-2.0
// What a Cluster was told and what it decided, step by step, as lines of text: the same steps give
// the same state again, wherever and whenever, so that a decision can be looked at afterwards.
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
Result<LogEntry> parse_log_entry(std::string_view line);  // Corrupt for what is none

// Does it again. Internal, with both, where a decision comes out differently.
Status replay(Cluster& cluster, const LogEntry& step);

// Everything that can be asked of a cluster, for comparing two of them.
std::string to_string(const Cluster& cluster);

}  // namespace gantry::placement
