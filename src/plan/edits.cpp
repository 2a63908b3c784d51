// SPDX-License-Identifier: Apache-2.0
#include "plan/edits.hpp"

#include "plan/edits_internal.hpp"
#include "plan/requirement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::plan {
namespace {

using model::ContainerEdits;
using model::Inventory;

template <class T>
void add_new(std::vector<T>& to, const std::vector<T>& from) {
  for (const auto& value : from) {
    if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
  }
}

}  // namespace

void append(ContainerEdits& edits, const ContainerEdits& more) {
  for (const auto& node : more.nodes) {
    const auto same = [&](const model::NodeEdit& other) { return other.path == node.path; };
    if (std::none_of(edits.nodes.begin(), edits.nodes.end(), same)) edits.nodes.push_back(node);
  }
  add_new(edits.mounts, more.mounts);
  add_new(edits.env, more.env);
  add_new(edits.hooks, more.hooks);
  add_new(edits.libraries, more.libraries);
  add_new(edits.files, more.files);
  add_new(edits.additional_gids, more.additional_gids);
  add_new(edits.notes, more.notes);
}

Result<ContainerEdits> common_edits(const Inventory& machine, model::CapabilityMask closed,
                                    const PlanOptions& options) {
  ContainerEdits edits;
  GANTRY_CHECK(add_control_nodes(machine, closed, options, edits));
  add_driver_files(machine, closed, options, edits);
  // The first keeps another injector that sees this container from adding everything again.
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void",
               fmt::format("NVIDIA_CTK_LIBCUDA_DIR={}", kContainerLibraries)};
  return edits;
}

Result<ContainerEdits> edits_for(const Inventory& machine, const model::Request& request,
                                 const PlanOptions& options) {
  ContainerEdits edits;
  const auto closed = model::closed_mask(request.capabilities);
  if (!request.devices.empty()) {
    GANTRY_TRY(const Selection selection, select(machine, request.devices));
    GANTRY_CHECK(check_requirements(request.requirements, machine, selection.devices));
    GANTRY_TRY(edits, common_edits(machine, closed, options));
    for (const auto& device : selection.devices) {
      GANTRY_TRY(const ContainerEdits more, device_edits(machine, device, closed, options));
      append(edits, more);
    }
    add_new(edits.notes, selection.notes);
  }
  return edits;
}

}  // namespace gantry::plan
