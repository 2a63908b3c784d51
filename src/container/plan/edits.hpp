// SPDX-License-Identifier: Apache-2.0
// From what a machine has and what a container asks for to everything that container gets. Pure: no
// file is read here. The three flavours differ in how the container's loader finds the libraries.
#pragma once

#include "base/core/result.hpp"
#include "container/plan/device_selection.hpp"
#include "container/plan/driver_paths.hpp"
#include "gpu/model/container_edits.hpp"
#include "gpu/model/container_request.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::plan {

enum class Flavour : std::uint8_t {
  NoHooks,  // mounts only, also at the loader's own subdirectories
  OneHook,  // one static hook merges the image's ld.so.cache
  Shim      // gantry-runtime does that merge before the container is created
};

// Whether nodes carry major, minor, mode and group: only where they are used at once. Majors change
// from boot to boot, so nothing that is stored may have them.
enum class DeviceNumbers : std::uint8_t { Leave, Fill };

// AdditionalGroups that a container's user joins to open nodes that are not for everybody.
enum class AdditionalGroups : std::uint8_t {
  None,
  DriverNodes,  // /dev/nvidia*, without which nothing works; not those of /dev/dri
  AllNodes
};

struct PlanOptions {
  Flavour flavour = Flavour::NoHooks;
  std::string engine_root;  // put before every path on the host: "" or a simulated tree's place
  std::string prepared{kCurrentDriverLink};  // the directory to mount from, inside the host's root
  std::string hook_path = "/usr/bin/nvidia-cdi-hook";  // OneHook; as the engine sees it
  bool firmware = false;                               // a container needs none
  DeviceNumbers numbers = DeviceNumbers::Leave;
  AdditionalGroups groups = AdditionalGroups::AllNodes;
  bool sockets = true;  // of persistenced and the fabric manager, with utility
};

// Everything for one container. A request that wants nothing gives no edits. Errors: those of
// select(); NotFound for a node that is missing, with the command that makes it; Unsupported for a
// requirement that does not hold. CDI names of other kinds are left to src/container/cdi.
Result<model::ContainerEdits> edits_for(const model::Inventory& machine,
                                        const model::ContainerRequest& request,
                                        const PlanOptions& options);

// The same in the parts that a CDI spec has. What every container with these capabilities gets:
// control nodes, driver files, environment, hook, groups.
Result<model::ContainerEdits> common_edits(const model::Inventory& machine,
                                           model::CapabilityMask closed,
                                           const PlanOptions& options);

// The nodes of one GPU or MIG instance.
Result<model::ContainerEdits> device_edits(const model::Inventory& machine,
                                           const SelectedDevice& device,
                                           model::CapabilityMask closed,
                                           const PlanOptions& options);

// NotFound, with what would make them, where the machine has no nodes of that group.
Result<model::ContainerEdits> group_edits(const model::Inventory& machine, model::DeviceGroup group,
                                          const PlanOptions& options);

Result<model::ContainerEdits> imex_edits(const model::Inventory& machine, std::uint32_t channel,
                                         const PlanOptions& options);
std::vector<std::uint32_t> imex_channels(const model::Inventory& machine);  // those with a node

enum class MigControl : std::uint8_t { Configure, Monitor };
Result<model::ContainerEdits> mig_control_edits(const model::Inventory& machine, MigControl rights,
                                                const PlanOptions& options);

// The nodes of every GPU, lost ones too, and of every capability and channel: for programs that
// look after the machine. NotFound where there is no node at all.
Result<model::ContainerEdits> management_edits(const model::Inventory& machine,
                                               const PlanOptions& options);

// `more` at the end of `edits`; what is there already is not added twice.
void append(model::ContainerEdits& edits, const model::ContainerEdits& more);

}  // namespace gantry::plan
