// SPDX-License-Identifier: Apache-2.0
#include "container/plan/edits.hpp"

#include "container/plan/edits_internal.hpp"
#include "container/plan/requirement.hpp"

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

constexpr std::string_view kProfile =
    "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf";

// EGL and Vulkan enumerate the machine's GPUs themselves; this mask of minors restricts them to the
// container's GPUs. The file is in the driver's own dialect of JSON, with a hexadecimal number.
void add_application_profile(const Selection& selection, ContainerEdits& edits) {
  std::uint64_t minors = 0;
  for (const auto& device : selection.devices) {
    if (device.gpu->minor && *device.gpu->minor < 64)
      minors |= std::uint64_t{1} << *device.gpu->minor;
  }
  edits.files.push_back(
      {.path = std::string(kProfile),
       .content = fmt::format("{{\"profiles\": [{{\"name\": \"_container_\", \"settings\": "
                              "[\"EGLVisibleDGPUDevices\", 0x{:x}]}}], \"rules\": [{{\"pattern\": "
                              "[], \"profile\": \"_container_\"}}]}}\n",
                              minors),
       .why = "EGL and Vulkan list only the container's GPUs"});
}

void note_mismatch(const model::Driver& driver, ContainerEdits& edits) {
  if (driver.version.empty() || driver.library_version.empty() ||
      driver.version == driver.library_version) {
    return;
  }
  edits.notes.push_back(fmt::format(
      "the driver's module is {} and its libraries are {}: containers cannot use the GPU "
      "until the machine is rebooted or the module is reloaded",
      driver.version, driver.library_version));
}

// Device groups that are requested by name in addition to GPUs. A missing group is an error.
Status add_named_parts(const Inventory& machine, const model::ContainerRequest& request,
                       const PlanOptions& options, ContainerEdits& edits) {
  for (const auto group : request.groups) {
    GANTRY_TRY(const auto more, group_edits(machine, group, options));
    append(edits, more);
  }
  for (const auto channel : request.imex_channels) {
    GANTRY_TRY(const auto more, imex_edits(machine, channel, options));
    append(edits, more);
  }
  if (request.mig_config) {
    GANTRY_TRY(const auto more, mig_control_edits(machine, MigControl::Configure, options));
    append(edits, more);
  }
  if (request.mig_monitor) {
    GANTRY_TRY(const auto more, mig_control_edits(machine, MigControl::Monitor, options));
    append(edits, more);
  }
  return {};
}

}  // namespace

void append(ContainerEdits& edits, const ContainerEdits& more) {
  for (const auto& node : more.nodes) {
    const auto same = [&](const model::DeviceNodeEdit& other) { return other.path == node.path; };
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
  note_mismatch(machine.driver, edits);
  // The first variable prevents another injector from adding everything again.
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void",
               fmt::format("NVIDIA_CTK_LIBCUDA_DIR={}", kContainerLibraryDirectory)};
  return edits;
}

Result<ContainerEdits> edits_for(const Inventory& machine, const model::ContainerRequest& request,
                                 const PlanOptions& options) {
  ContainerEdits edits;
  const auto closed = model::expand_capabilities(request.capabilities);
  if (!request.devices.empty()) {
    GANTRY_TRY(const Selection selection, select(machine, request.devices));
    GANTRY_CHECK(check_requirements(request.requirements, machine, selection.devices));
    GANTRY_TRY(edits, common_edits(machine, closed, options));
    for (const auto& device : selection.devices) {
      GANTRY_TRY(const ContainerEdits more, device_edits(machine, device, closed, options));
      append(edits, more);
    }
    add_new(edits.notes, selection.notes);
    if (options.flavour == Flavour::Shim && has(closed, model::Capability::Graphics))
      add_application_profile(selection, edits);
  }
  GANTRY_CHECK(add_named_parts(machine, request, options, edits));
  return edits;
}

}  // namespace gantry::plan
