// SPDX-License-Identifier: Apache-2.0
// Decides where the containers of a pod go on this node and whether there is room. Pure. The
// scheduler's placement is used if it matches what the pod asks for and does not conflict with a
// grant of this node, no matter what the API server says.
#pragma once

#include "base/core/result.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"
#include "container/grants/grants.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::pod_shares {

// A pod of this node, from the API server.
struct PlacedPod {
  podspec::PodRequest ask;
  podspec::Placement placement;
};

// For each pod, its grants as a request and a placement that would produce them.
std::vector<PlacedPod> granted_pods(std::span<const grants::GrantFile> granted);

// Denied, with a remedy, if the placement does not match the pod's request or names cards of
// another node. Busy if a card is unhealthy now.
Status check_placement(const podspec::PodRequest& ask, const podspec::Placement& placement,
                       const podspec::NodeInfo& node);

// Busy, with the card and the pods, if the placement and the grants of other pods together exceed
// the card.
Status check_room(const podspec::PodRequest& ask, const podspec::Placement& placement,
                  const podspec::NodeInfo& node, std::span<const grants::GrantFile> granted);

// Finds a place for a pod that no scheduler placed, considering all grants and all placements of
// the scheduler. Containers that have a grant keep it. Busy if there is no room.
Result<podspec::Placement> place_on_this_node(const podspec::PodRequest& ask,
                                              const podspec::NodeInfo& node,
                                              std::span<const PlacedPod> placed_pods,
                                              std::span<const grants::GrantFile> granted);

// Merges containers that have the same ids; only one of them runs at a time. On the same card, the
// larger limits count; on different cards, those of the last container, which runs longest.
std::vector<model::GpuShare> merge_containers(
    std::span<const podspec::ContainerPlacement> containers);

// Limits the merged parts to the pod's charge minus the grants of its other containers, but never
// below the parts of `stays`, the last container. So a later container does not keep what only an
// init container needed.
std::vector<model::GpuShare> limit_to_charge(std::vector<model::GpuShare> parts,
                                             const podspec::ContainerPlacement& stays,
                                             std::span<const podspec::Charge> charged,
                                             std::span<const model::GrantShare> others);

const podspec::ContainerPlacement* find(const podspec::Placement& placement,
                                        std::string_view container);
const podspec::ContainerRequest* find(const podspec::PodRequest& ask, std::string_view container);

}  // namespace gantry::pod_shares
