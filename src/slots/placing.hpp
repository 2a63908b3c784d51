// SPDX-License-Identifier: Apache-2.0
// Where the containers of a pod go on this node, and whether there is room: pure. The scheduler's
// placement is believed where it is what the pod asks for and where nothing that this node has
// given away is in its way, whatever the API server says.
#pragma once

#include "ask/ask.hpp"
#include "ask/node.hpp"
#include "ask/placement.hpp"
#include "base/result.hpp"
#include "grants/grants.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::slots {

// A pod of this node, as far as the API server tells.
struct Promised {
  ask::PodAsk ask;
  ask::Placement placement;
};

std::vector<ask::Part> parts_of(const model::GrantShare& share);

// By pod: what its containers have been given, as an ask that would give it.
std::vector<Promised> given_pods(std::span<const grants::Written> granted);

// Denied, with what helps, for a placement that is not what the pod asks for, or on cards that are
// not this node's; Busy for a card that is not healthy now.
Status check_placement(const ask::PodAsk& ask, const ask::Placement& placement,
                       const ask::NodeFacts& node);

// Busy, naming card and pods, where the placement would promise more than the card has beside what
// other pods were given.
Status check_room(const ask::PodAsk& ask, const ask::Placement& placement,
                  const ask::NodeFacts& node, std::span<const grants::Written> granted);

// A place for a pod that nobody placed: beside all that was given, and all that the scheduler
// promised. Containers that have been given something keep it. Busy where there is none.
Result<ask::Placement> place_here(const ask::PodAsk& ask, const ask::NodeFacts& node,
                                  std::span<const Promised> promised,
                                  std::span<const grants::Written> granted);

// Of containers that have the same ids, one of which will run at a time: their common card with the
// greater limits; on different cards those of the last, which stays longest.
std::vector<ask::Part> together(std::span<const ask::ContainerPlacement> containers);

// That, and no more than the pod is charged for beside what its other containers have been given,
// but never less than `stays` has, the last of them: what an init container needed while it was
// alone is not its successor's to keep.
std::vector<ask::Part> within_charge(std::vector<ask::Part> parts,
                                     const ask::ContainerPlacement& stays,
                                     std::span<const ask::Charge> charged,
                                     std::span<const model::GrantShare> others);

const ask::ContainerPlacement* find(const ask::Placement& placement, std::string_view container);
const ask::ContainerAsk* find(const ask::PodAsk& ask, std::string_view container);

}  // namespace gantry::slots
