// SPDX-License-Identifier: Apache-2.0
// Device groups that are requested by name, IMEX channels, MIG rights, and the edits for management
// containers.
#include "container/plan/edits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::plan {
namespace {

using model::ContainerEdits;
using model::DeviceGroup;
using model::Inventory;

struct GroupRow {
  DeviceGroup group;
  std::string_view name;
  std::array<std::string_view, 2> starts;  // of the nodes' paths
  std::string_view helps;
};
constexpr std::array kGroups{
    GroupRow{DeviceGroup::Gds, "GPUDirect Storage", {"/dev/nvidia-fs", ""}, "modprobe nvidia-fs"},
    GroupRow{DeviceGroup::Gdrcopy, "GDRCopy", {"/dev/gdrdrv", ""}, "modprobe gdrdrv"},
    GroupRow{DeviceGroup::Mofed,
             "InfiniBand",
             {"/dev/infiniband/uverbs", "/dev/infiniband/rdma_cm"},
             "modprobe -a mlx5_ib ib_uverbs rdma_ucm"},
    GroupRow{DeviceGroup::Nvswitch, "NVSwitch", {"/dev/nvidia-nvswitch", ""}, "nvidia-modprobe -l"},
};

// The driver gives these two the same numbers everywhere.
constexpr std::string_view kMigConfig = "/dev/nvidia-caps/nvidia-cap1";
constexpr std::string_view kMigMonitor = "/dev/nvidia-caps/nvidia-cap2";

// Files that GPUDirect Storage reads in addition to its nodes; the inventory has them if they
// exist.
constexpr std::array<std::string_view, 2> kStorageFiles{"/etc/cufile.json", "/run/udev"};

bool belongs(const GroupRow& row, std::string_view path) {
  return std::any_of(row.starts.begin(), row.starts.end(), [&](std::string_view start) {
    return !start.empty() && path.starts_with(start);
  });
}

void add_storage_files(const Inventory& machine, const PlanOptions& options,
                       ContainerEdits& edits) {
  for (const auto& file : machine.files) {
    if (std::find(kStorageFiles.begin(), kStorageFiles.end(), file.path) == kStorageFiles.end())
      continue;
    edits.mounts.push_back({.host_path = engine_path(options, file.path),
                            .container_path = file.path,
                            .why = "GPUDirect Storage"});
  }
}

}  // namespace

Result<ContainerEdits> group_edits(const Inventory& machine, DeviceGroup group,
                                   const PlanOptions& options) {
  const auto* row = std::find_if(kGroups.begin(), kGroups.end(),
                                 [&](const GroupRow& r) { return r.group == group; });
  GANTRY_ASSERT(row != kGroups.end());
  ContainerEdits edits;
  for (const auto& node : machine.nodes) {
    if (!belongs(*row, node.path)) continue;
    GANTRY_CHECK(
        add_node(machine, node.path, MissingNodePolicy::Refuse, row->name, options, edits));
  }
  if (edits.nodes.empty()) {
    return Error(Errc::NotFound,
                 fmt::format("{} was requested, but this machine has no {}*; to load its module "
                             "run `{}`",
                             row->name, row->starts[0], row->helps));
  }
  if (group == DeviceGroup::Gds) add_storage_files(machine, options, edits);
  return edits;
}

Result<ContainerEdits> imex_edits(const Inventory& machine, std::uint32_t channel,
                                  const PlanOptions& options) {
  ContainerEdits edits;
  const auto path = fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
  const bool there = std::any_of(machine.nodes.begin(), machine.nodes.end(),
                                 [&](const auto& node) { return node.path == path; });
  if (!there) {
    return Error(Errc::NotFound,
                 fmt::format("there is no IMEX channel {0} on this machine: {1} is missing; create "
                             "it: mknod {1} c $(awk '$2 == \"nvidia-caps-imex-channels\" {{print "
                             "$1}}' /proc/devices) {0}",
                             channel, path));
  }
  GANTRY_CHECK(add_node(machine, path, MissingNodePolicy::Refuse,
                        fmt::format("IMEX channel {}", channel), options, edits));
  return edits;
}

std::vector<std::uint32_t> imex_channels(const Inventory& machine) {
  std::vector<std::uint32_t> channels;
  for (const auto& node : machine.nodes) {
    if (node.path.starts_with("/dev/nvidia-caps-imex-channels/")) channels.push_back(node.minor);
  }
  std::sort(channels.begin(), channels.end());
  return channels;
}

Result<ContainerEdits> mig_control_edits(const Inventory& machine, MigControl rights,
                                         const PlanOptions& options) {
  ContainerEdits edits;
  const bool config = rights == MigControl::Configure;
  GANTRY_CHECK(add_node(machine, config ? kMigConfig : kMigMonitor, MissingNodePolicy::Refuse,
                        config ? "creating and removing MIG instances" : "monitoring MIG instances",
                        options, edits));
  return edits;
}

Result<ContainerEdits> management_edits(const Inventory& machine, const PlanOptions& options) {
  ContainerEdits edits;
  for (const auto& node : machine.nodes) {
    const std::string_view path = node.path;
    const bool theirs = path.starts_with("/dev/nvidia-fs") || path.starts_with("/dev/nvidia-nvs") ||
                        path.starts_with("/dev/nvidia-nvlink");
    if (!path.starts_with("/dev/nvidia") || theirs) continue;
    GANTRY_CHECK(add_node(machine, path, MissingNodePolicy::Refuse, node.why, options, edits));
  }
  if (edits.nodes.empty()) {
    return Error(Errc::NotFound,
                 "this machine has no /dev/nvidia*; `gantry doctor --fix` creates "
                 "the nodes if the driver is loaded");
  }
  return edits;
}

}  // namespace gantry::plan
