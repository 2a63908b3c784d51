// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/procfs_inventory.hpp"

#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/mig.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::runtime {
namespace {

void add_node(const sys::Host& host, std::string path, std::string why,
              std::vector<model::DeviceNode>& nodes) {
  const auto info = host.device(path);
  if (!info.ok()) return;
  nodes.push_back({.path = std::move(path),
                   .major = info->major,
                   .minor = info->minor,
                   .mode = info->mode,
                   .uid = info->uid,
                   .gid = info->gid,
                   .why = std::move(why)});
}

constexpr std::array kControlNodes{std::pair{"/dev/nvidiactl", "control"},
                                   std::pair{"/dev/nvidia-modeset", "mode setting"},
                                   std::pair{"/dev/nvidia-uvm", "unified memory"},
                                   std::pair{"/dev/nvidia-uvm-tools", "unified memory tools"}};

constexpr std::array kEverything{model::Capability::Compute, model::Capability::Utility,
                                 model::Capability::Video,   model::Capability::Graphics,
                                 model::Capability::Display, model::Capability::Ngx};

bool has_files(const sys::Host& host, const std::string& directory) {
  const auto names = host.list(directory);
  return names.ok() && !names->empty();
}

// The prepared directory's sets say which files a capability needs; here they only need to exist.
std::vector<model::DriverFile> prepared_files(const sys::Host& host,
                                              const driver_dir::CurrentDriver& prepared) {
  std::vector<model::DriverFile> files;
  if (has_files(host, prepared.directory + "/lib64")) {
    files.push_back({.path = prepared.directory + "/lib64",
                     .capabilities = {kEverything.begin(), kEverything.end()}});
  }
  if (has_files(host, prepared.directory + "/lib")) {
    files.push_back({.path = prepared.directory + "/lib",
                     .capabilities = {kEverything.begin(), kEverything.end()},
                     .is_32bit = true});
  }
  if (host.exists(prepared.directory + "/bin/nvidia-smi")) {
    files.push_back({.path = prepared.directory + "/bin/nvidia-smi",
                     .kind = model::DriverFileKind::Binary,
                     .capabilities = {model::Capability::Utility}});
  }
  return files;
}

}  // namespace

Result<model::Inventory> procfs_inventory(const sys::Host& host,
                                          const driver_dir::CurrentDriver& prepared) {
  GANTRY_TRY(auto entries, procfs::read_gpus(host).in("finding the driver's GPUs"));
  model::Inventory machine;
  machine.driver.version = prepared.version;
  machine.driver.library_version = prepared.version;
  for (auto& entry : entries) {
    if (entry.information.excluded) continue;
    auto& gpu = machine.gpus.emplace_back(std::move(entry.information.gpu));
    gpu.index = static_cast<int>(machine.gpus.size() - 1);
    if (!gpu.minor) continue;
    if (procfs::has_mig_instances(host, *gpu.minor)) gpu.mig.current = model::MigMode::Enabled;
    add_node(host, fmt::format("/dev/nvidia{}", *gpu.minor), fmt::format("GPU {}", gpu.index),
             machine.nodes);
  }
  for (const auto& [path, why] : kControlNodes) add_node(host, path, why, machine.nodes);
  machine.files = prepared_files(host, prepared);
  return machine;
}

}  // namespace gantry::runtime
