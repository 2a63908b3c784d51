// SPDX-License-Identifier: Apache-2.0
// Where the containers of a pod go on this node, and whether there is room: pure. The scheduler's
// placement is believed where it is what the pod asks for and where nothing that this node has
// given away is in its way, whatever the API server says.
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

// A pod of this node, as far as the API server tells.
struct PlacedPod {
  podspec::PodRequest ask;
  podspec::Placement placement;
};

std::vector<podspec::GpuAllocation> allocations_of(const model::GrantShare& share);

// By pod: what its containers have been given, as an ask that would give it.
std::vector<PlacedPod> granted_pods(std::span<const grants::GrantFile> granted);

// Denied, with what helps, for a placement that is not what the pod asks for, or on cards that are
// not this node's; Busy for a card that is not healthy now.
Status check_placement(const podspec::PodRequest& ask, const podspec::Placement& placement,
                       const podspec::NodeInfo& node);

// Busy, naming card and pods, where the placement would promise more than the card has beside what
// other pods were given.
Status check_room(const podspec::PodRequest& ask, const podspec::Placement& placement,
                  const podspec::NodeInfo& node, std::span<const grants::GrantFile> granted);

// A place for a pod that nobody placed: beside all that was given, and all that the scheduler
// promised. Containers that have been given something keep it. Busy where there is none.
Result<podspec::Placement> place_on_this_node(const podspec::PodRequest& ask,
                                              const podspec::NodeInfo& node,
                                              std::span<const PlacedPod> placed_pods,
                                              std::span<const grants::GrantFile> granted);

// Of containers that have the same ids, one of which will run at a time: their common card with the
// greater limits; on different cards those of the last, which stays longest.
std::vector<podspec::GpuAllocation> merge_containers(
    std::span<const podspec::ContainerPlacement> containers);

// That, and no more than the pod is charged for beside what its other containers have been given,
// but never less than `stays` has, the last of them: what an init container needed while it was
// alone is not its successor's to keep.
std::vector<podspec::GpuAllocation> limit_to_charge(std::vector<podspec::GpuAllocation> parts,
                                                    const podspec::ContainerPlacement& stays,
                                                    std::span<const podspec::Charge> charged,
                                                    std::span<const model::GrantShare> others);

const podspec::ContainerPlacement* find(const podspec::Placement& placement,
                                        std::string_view container);
const podspec::ContainerRequest* find(const podspec::PodRequest& ask, std::string_view container);

}  // namespace gantry::pod_shares
