// SPDX-License-Identifier: Apache-2.0
// Where the containers of a pod go on this node, and whether there is room: pure. The scheduler's
// placement is believed where it is what the pod asks for and where nothing that this node has
// given away is in its way, whatever the API server says.
#pragma once

#include "base/core/result.hpp"
#include "cluster/podspec/ask.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"
#include "container/grants/grants.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::pod_shares {

// A pod of this node, as far as the API server tells.
struct Promised {
  podspec::PodAsk ask;
  podspec::Placement placement;
};

std::vector<podspec::Part> parts_of(const model::GrantShare& share);

// By pod: what its containers have been given, as an ask that would give it.
std::vector<Promised> given_pods(std::span<const grants::Written> granted);

// Denied, with what helps, for a placement that is not what the pod asks for, or on cards that are
// not this node's; Busy for a card that is not healthy now.
Status check_placement(const podspec::PodAsk& ask, const podspec::Placement& placement,
                       const podspec::NodeFacts& node);

// Busy, naming card and pods, where the placement would promise more than the card has beside what
// other pods were given.
Status check_room(const podspec::PodAsk& ask, const podspec::Placement& placement,
                  const podspec::NodeFacts& node, std::span<const grants::Written> granted);

// A place for a pod that nobody placed: beside all that was given, and all that the scheduler
// promised. Containers that have been given something keep it. Busy where there is none.
Result<podspec::Placement> place_here(const podspec::PodAsk& ask, const podspec::NodeFacts& node,
                                      std::span<const Promised> promised,
                                      std::span<const grants::Written> granted);

// Of containers that have the same ids, one of which will run at a time: their common card with the
// greater limits; on different cards those of the last, which stays longest.
std::vector<podspec::Part> together(std::span<const podspec::ContainerPlacement> containers);

// That, and no more than the pod is charged for beside what its other containers have been given,
// but never less than `stays` has, the last of them: what an init container needed while it was
// alone is not its successor's to keep.
std::vector<podspec::Part> within_charge(std::vector<podspec::Part> parts,
                                         const podspec::ContainerPlacement& stays,
                                         std::span<const podspec::Charge> charged,
                                         std::span<const model::GrantShare> others);

const podspec::ContainerPlacement* find(const podspec::Placement& placement,
                                        std::string_view container);
const podspec::ContainerAsk* find(const podspec::PodAsk& ask, std::string_view container);

}  // namespace gantry::pod_shares
