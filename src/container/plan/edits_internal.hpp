// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/plan/edits.hpp"

#include <string>
#include <string_view>

namespace gantry::plan {

// The path as the engine sees it.
std::string engine_path(const PlanOptions& options, std::string_view path);

bool has(model::CapabilityMask mask, model::Capability capability);

enum class MissingNodePolicy : std::uint8_t { Refuse, Note };

// Adds the node, with its group if that is needed. `why`, if given, replaces the inventory's
// reason.
Status add_node(const model::Inventory& machine, std::string_view path, MissingNodePolicy missing,
                std::string_view why, const PlanOptions& options, model::ContainerEdits& edits);

// Adds nvidiactl; nvidia-uvm with Compute; nvidia-modeset with Graphics or Display.
Status add_control_nodes(const model::Inventory& machine, model::CapabilityMask closed,
                         const PlanOptions& options, model::ContainerEdits& edits);

// Adds libraries, programs, configuration and sockets; the loader's part depends on the flavour.
void add_driver_files(const model::Inventory& machine, model::CapabilityMask closed,
                      const PlanOptions& options, model::ContainerEdits& edits);

}  // namespace gantry::plan
