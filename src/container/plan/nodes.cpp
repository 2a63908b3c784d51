// SPDX-License-Identifier: Apache-2.0
// Device nodes: control nodes, nodes of a GPU, nodes of a MIG instance.
#include "container/plan/edits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::plan {
namespace {

using model::Capability;
using model::ContainerEdits;
using model::Inventory;

const model::DeviceNode* find_node(const Inventory& machine, std::string_view path) {
  for (const auto& node : machine.nodes) {
    if (node.path == path) return &node;
  }
  return nullptr;
}

constexpr std::uint32_t kOtherReadWrite = 0006;

void add_group(const model::DeviceNode& node, const PlanOptions& options, ContainerEdits& edits) {
  if ((node.mode & kOtherReadWrite) == kOtherReadWrite || node.gid == 0) return;
  const bool drm = node.path.starts_with("/dev/dri/");
  if (options.groups == AdditionalGroups::None) return;
  if (drm && options.groups == AdditionalGroups::DriverNodes) {
    const auto note = fmt::format(
        "nodes below /dev/dri belong to group {0}: a user other than root must be in it for "
        "graphics "
        "(podman: --group-add {0}; or --additional-gids all, which needs CDI 0.7)",
        node.gid);
    if (std::find(edits.notes.begin(), edits.notes.end(), note) == edits.notes.end())
      edits.notes.push_back(note);
    return;
  }
  auto& gids = edits.additional_gids;
  if (std::find(gids.begin(), gids.end(), node.gid) == gids.end()) gids.push_back(node.gid);
}

// Nodes of graphics. Each of udev's links below by-path follows the node that it links to; a
// container gets it as another node, because neither CDI nor config.json can express a link.
Status add_drm_nodes(const Inventory& machine, const model::Gpu& gpu, const PlanOptions& options,
                     ContainerEdits& edits) {
  const auto why = fmt::format("DRM of GPU {}", gpu.index);
  for (const auto& path : gpu.drm_nodes) {
    if (!path.starts_with("/dev/dri/by-path/")) {
      GANTRY_CHECK(add_node(machine, path, MissingNodePolicy::Note, why, options, edits));
      continue;
    }
    const auto* kind = path.ends_with("-card") ? "/dev/dri/card" : "/dev/dri/renderD";
    if (edits.nodes.empty() || !edits.nodes.back().path.starts_with(kind)) continue;
    auto link = edits.nodes.back();
    link.path = path;
    edits.nodes.push_back(std::move(link));
  }
  return {};
}

std::string describe_device(const SelectedDevice& device) {
  if (device.mig == nullptr) return fmt::format("GPU {}", device.gpu->index);
  return fmt::format("MIG instance {}:{}", device.gpu->index, device.mig->index);
}

Status add_capability_nodes(const Inventory& machine, const model::MigInstance& mig,
                            const SelectedDevice& device, const PlanOptions& options,
                            ContainerEdits& edits) {
  for (const auto& path : {mig.gpu_instance_node, mig.compute_instance_node}) {
    if (path.empty()) {
      return Error(Errc::NotFound,
                   fmt::format(
                       "the inventory does not contain the capability nodes of MIG instance {}:{}",
                       device.gpu->index, mig.index))
          .advise("run `gantry cdi refresh`");
    }
    GANTRY_CHECK(
        add_node(machine, path, MissingNodePolicy::Refuse,
                 fmt::format("MIG instance {}:{} ({})", device.gpu->index, mig.index, mig.profile),
                 options, edits));
  }
  return {};
}

}  // namespace

bool has(model::CapabilityMask mask, Capability capability) {
  return (mask & model::mask_of(capability)) != 0;
}

std::string engine_path(const PlanOptions& options, std::string_view path) {
  return fmt::format("{}{}", options.engine_root == "/" ? "" : options.engine_root, path);
}

Status add_node(const Inventory& machine, std::string_view path, MissingNodePolicy missing,
                std::string_view why, const PlanOptions& options, ContainerEdits& edits) {
  const auto* node = find_node(machine, path);
  if (node == nullptr) {
    auto error = Error(Errc::NotFound, fmt::format("{}: {} is missing", why, path))
                     .advise("`gantry doctor --fix` creates it");
    if (missing == MissingNodePolicy::Refuse) return error;
    edits.notes.push_back(error.text());
    return {};
  }
  model::DeviceNodeEdit edit{
      .path = node->path, .host_path = engine_path(options, node->path), .why = std::string(why)};
  if (options.numbers == DeviceNumbers::Fill) {
    edit.major = node->major;
    edit.minor = node->minor;
    edit.mode = node->mode;
    edit.gid = node->gid;
  }
  const auto same = [&](const model::DeviceNodeEdit& other) { return other.path == edit.path; };
  if (std::none_of(edits.nodes.begin(), edits.nodes.end(), same))
    edits.nodes.push_back(std::move(edit));
  add_group(*node, options, edits);
  return {};
}

Status add_control_nodes(const Inventory& machine, model::CapabilityMask closed,
                         const PlanOptions& options, ContainerEdits& edits) {
  GANTRY_CHECK(
      add_node(machine, "/dev/nvidiactl", MissingNodePolicy::Refuse, "control", options, edits));
  if (has(closed, Capability::Compute)) {
    GANTRY_CHECK(add_node(machine, "/dev/nvidia-uvm", MissingNodePolicy::Note,
                          "unified memory, which CUDA needs", options, edits));
    if (find_node(machine, "/dev/nvidia-uvm-tools") != nullptr) {
      GANTRY_CHECK(add_node(machine, "/dev/nvidia-uvm-tools", MissingNodePolicy::Note,
                            "unified memory, for profilers", options, edits));
    }
  }
  if (has(closed, Capability::Graphics) && find_node(machine, "/dev/nvidia-modeset") != nullptr) {
    GANTRY_CHECK(add_node(machine, "/dev/nvidia-modeset", MissingNodePolicy::Note, "mode setting",
                          options, edits));
  }
  return {};
}

Result<ContainerEdits> device_edits(const Inventory& machine, const SelectedDevice& device,
                                    model::CapabilityMask closed, const PlanOptions& options) {
  ContainerEdits edits;
  const auto& gpu = *device.gpu;
  if (!gpu.minor) {
    return Error(Errc::NotFound,
                 fmt::format("{}: neither /proc/driver/nvidia nor NVML has its minor number",
                             describe_device(device)))
        .advise("run `gantry doctor`");
  }
  GANTRY_CHECK(add_node(machine, fmt::format("/dev/nvidia{}", *gpu.minor),
                        MissingNodePolicy::Refuse, describe_device(device), options, edits));
  if (device.mig != nullptr) {
    GANTRY_CHECK(add_capability_nodes(machine, *device.mig, device, options, edits));
    return edits;  // MIG instances have no graphics
  }
  for (const auto& mig : gpu.mig.instances)
    GANTRY_CHECK(add_capability_nodes(machine, mig, device, options, edits));
  if (has(closed, Capability::Graphics)) GANTRY_CHECK(add_drm_nodes(machine, gpu, options, edits));
  return edits;
}

}  // namespace gantry::plan
