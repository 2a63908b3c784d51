// SPDX-License-Identifier: Apache-2.0
// Computes the edits for a container from the machine's inventory and the container's request.
// Pure: reads no file. The three flavours differ in how the container's loader finds the libraries.
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

// Whether nodes have major, minor, mode and group. Majors can change at every boot, so only edits
// that are applied at once may have them, never edits that are stored.
enum class DeviceNumbers : std::uint8_t { Leave, Fill };

// Groups that a container's user joins to open nodes that not every user may open.
enum class AdditionalGroups : std::uint8_t {
  None,
  DriverNodes,  // the groups of /dev/nvidia*, which every container needs; not of /dev/dri
  AllNodes
};

struct PlanOptions {
  Flavour flavour = Flavour::NoHooks;
  std::string engine_root;  // prefix of every host path: "" or the path of a simulated tree
  std::string prepared{kCurrentDriverLink};  // the directory to mount from, inside the host's root
  std::string hook_path = "/usr/bin/nvidia-cdi-hook";  // OneHook; as the engine sees it
  bool firmware = false;                               // containers do not need firmware
  DeviceNumbers numbers = DeviceNumbers::Leave;
  AdditionalGroups groups = AdditionalGroups::AllNodes;
  bool sockets = true;    // of persistenced and the fabric manager, with utility
  bool node_hook = true;  // OneHook: also the hook of node_creation_hook()
};

// The hook that keeps the driver's libraries in a container from creating device nodes. Without it,
// root with CAP_MKNOD gets nodes of all GPUs in its /dev, which its cgroup does not let it open.
model::HookEdit node_creation_hook(const PlanOptions& options);

// All edits for one container; none for an empty request. Errors: those of select(); NotFound for a
// missing node, with the command that creates it; Unsupported for a requirement that is not met.
// Ignores CDI names of other kinds: src/container/cdi handles them.
Result<model::ContainerEdits> edits_for(const model::Inventory& machine,
                                        const model::ContainerRequest& request,
                                        const PlanOptions& options);

// The same edits, divided like a CDI spec. This part is for every container with these
// capabilities: control nodes, driver files, environment, hook, groups.
Result<model::ContainerEdits> common_edits(const model::Inventory& machine,
                                           model::CapabilityMask closed,
                                           const PlanOptions& options);

// The nodes of one GPU or MIG instance.
Result<model::ContainerEdits> device_edits(const model::Inventory& machine,
                                           const SelectedDevice& device,
                                           model::CapabilityMask closed,
                                           const PlanOptions& options);

// NotFound, with the command that creates them, if the machine has no nodes of that group.
Result<model::ContainerEdits> group_edits(const model::Inventory& machine, model::DeviceGroup group,
                                          const PlanOptions& options);

Result<model::ContainerEdits> imex_edits(const model::Inventory& machine, std::uint32_t channel,
                                         const PlanOptions& options);
std::vector<std::uint32_t> imex_channels(const model::Inventory& machine);  // that have a node

enum class MigControl : std::uint8_t { Configure, Monitor };
Result<model::ContainerEdits> mig_control_edits(const model::Inventory& machine, MigControl rights,
                                                const PlanOptions& options);

// The nodes of every GPU, including lost ones, and of every capability and channel: for programs
// that manage the machine. NotFound if there are no nodes.
Result<model::ContainerEdits> management_edits(const model::Inventory& machine,
                                               const PlanOptions& options);

// Appends `more` to `edits`; skips entries that are already there.
void append(model::ContainerEdits& edits, const model::ContainerEdits& more);

}  // namespace gantry::plan
