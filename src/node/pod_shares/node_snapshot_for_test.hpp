// SPDX-License-Identifier: Apache-2.0
// The node "n", with the GPUs of a simulated machine.
#pragma once

#include "gpu/probe/snapshot.hpp"
#include "node/pod_shares/share_provisioner.hpp"

#include <utility>

namespace gantry::pod_shares {

inline Result<NodeSnapshot> read_snapshot(const sys::Host& host) {
  NodeSnapshot node;
  GANTRY_TRY(node.inventory, probe::snapshot(host));
  node.facts.name = "n";
  for (const auto& gpu : node.inventory.gpus) {
    node.facts.cards.push_back({.uuid = gpu.uuid.text,
                                .index = static_cast<std::uint32_t>(gpu.index),
                                .mib = *gpu.memory_bytes >> 20U});
  }
  return node;
}

}  // namespace gantry::pod_shares
