// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/procfs_inventory.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::runtime {
namespace {

constexpr std::string_view kGpus = "/proc/driver/nvidia/gpus";
constexpr std::size_t kMostGpus = 1024;

std::string_view field(std::string_view information, std::string_view name) {
  for (const auto line : lines(information)) {
    if (!line.starts_with(name)) continue;
    const auto rest = line.substr(name.size());
    if (rest.starts_with(':')) return trim(rest.substr(1));
  }
  return {};
}

// Each instance has a directory below the GPU's capabilities.
bool has_instances(const sys::Host& host, std::uint32_t minor) {
  const auto names = host.list(fmt::format("/proc/driver/nvidia/capabilities/gpu{}/mig", minor));
  if (!names.ok()) return false;
  for (const auto& name : *names) {
    if (name.starts_with("gi")) return true;
  }
  return false;
}

std::optional<model::Gpu> read_gpu(const sys::Host& host, const std::string& address) {
  const auto text = host.read(fmt::format("{}/{}/information", kGpus, address), 64 << 10);
  if (!text.ok() || field(*text, "GPU Excluded") == "Yes") return std::nullopt;
  const auto minor = parse_u64(field(*text, "Device Minor"));
  const auto pci = model::PciAddress::parse(address);
  if (!minor || *minor > 0xFFFFF || !pci) return std::nullopt;
  model::Gpu gpu;
  gpu.uuid.text = field(*text, "GPU UUID");
  gpu.name = field(*text, "Model");
  gpu.pci = *pci;
  gpu.minor = static_cast<std::uint32_t>(*minor);
  if (has_instances(host, *gpu.minor)) gpu.mig.current = model::MigMode::Enabled;
  return gpu;
}

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
  GANTRY_TRY(const auto addresses, host.list(kGpus).in("the driver is not loaded"));
  if (addresses.size() > kMostGpus) {
    return Error(Errc::Corrupt, fmt::format("{} has {} entries", kGpus, addresses.size()));
  }
  model::Inventory machine;
  machine.driver.version = prepared.version;
  machine.driver.library_version = prepared.version;
  for (const auto& address : addresses) {
    auto gpu = read_gpu(host, address);
    if (!gpu) continue;
    gpu->index = static_cast<int>(machine.gpus.size());
    add_node(host, fmt::format("/dev/nvidia{}", *gpu->minor), fmt::format("GPU {}", gpu->index),
             machine.nodes);
    machine.gpus.push_back(*std::move(gpu));
  }
  for (const auto& [path, why] : kControlNodes) add_node(host, path, why, machine.nodes);
  machine.files = prepared_files(host, prepared);
  return machine;
}

}  // namespace gantry::runtime
