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

struct Step {
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
  std::string name;          // of the node; of the namespace for Quota; uid for PodGone and Release
  podspec::NodeFacts facts;  // Node
  podspec::PodAsk ask;       // Pod, Reserve
  std::optional<podspec::Placement> placement;
  Quota quota;
  bool operator==(const Step&) const;
};

std::string to_text(const Step& step);          // a line of JSON, without its end
Result<Step> step_from(std::string_view line);  // Corrupt for what is none

// Does it again. Internal, with both, where a decision comes out differently.
Status replay(Cluster& cluster, const Step& step);

// Everything that can be asked of a cluster, for comparing two of them.
std::string to_text(const Cluster& cluster);

}  // namespace gantry::placement
