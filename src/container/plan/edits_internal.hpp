// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "container/plan/edits.hpp"

#include <string>
#include <string_view>

namespace gantry::plan {

// As the engine sees it.
std::string engine_path(const PlanOptions& options, std::string_view path);

bool has(model::CapabilityMask mask, model::Capability capability);

enum class MissingNodePolicy : std::uint8_t { Refuse, Note };

// The node, with its group where that is needed. `why` instead of the inventory's reason if given.
Status add_node(const model::Inventory& machine, std::string_view path, MissingNodePolicy missing,
                std::string_view why, const PlanOptions& options, model::ContainerEdits& edits);

// nvidiactl; unified memory with compute; mode setting with graphics or display.
Status add_control_nodes(const model::Inventory& machine, model::CapabilityMask closed,
                         const PlanOptions& options, model::ContainerEdits& edits);

// Libraries, programs, configuration, sockets; the loader's part by flavour.
void add_driver_files(const model::Inventory& machine, model::CapabilityMask closed,
                      const PlanOptions& options, model::ContainerEdits& edits);

}  // namespace gantry::plan
