// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "gantry/container_cli.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {
namespace {

bool same_id(std::string_view a, std::string_view b) {
  return to_lower(a) == to_lower(b);
}

bool names_gpu(std::string_view id, const model::Gpu& gpu) {
  const auto address = model::PciAddress::parse(id);
  return same_id(id, "all") || id == fmt::to_string(gpu.index) || same_id(id, gpu.uuid.text) ||
         (address && *address == gpu.pci);
}

bool names_mig(std::string_view id, const model::Gpu& gpu, const model::MigInstance& mig) {
  const auto old_name =
      fmt::format("MIG-{}/{}/{}", gpu.uuid.text, mig.gpu_instance, mig.compute_instance);
  return same_id(id, "all") || id == fmt::format("{}:{}", gpu.index, mig.index) ||
         same_id(id, mig.uuid.text) || same_id(id, old_name);
}

class Listing {
 public:
  void add(const std::string& path) {
    if (!path.empty() && std::find(paths_.begin(), paths_.end(), path) == paths_.end()) {
      paths_.push_back(path);
    }
  }
  std::string text() const {
    std::string all;
    for (const auto& path : paths_) all += path + "\n";
    return all;
  }

 private:
  std::vector<std::string> paths_;
};

void add_control_nodes(const model::Inventory& machine, Listing& listing) {
  for (const auto& node : machine.nodes) {
    const bool control = node.path == "/dev/nvidiactl" || node.path == "/dev/nvidia-modeset" ||
                         node.path.starts_with("/dev/nvidia-uvm");
    if (control) listing.add(node.path);
  }
}

void add_mig(const model::Gpu& gpu, const model::MigInstance& mig, Listing& listing) {
  const auto base = fmt::format("/proc/driver/nvidia/capabilities/gpu{}/mig/gi{}",
                                gpu.minor.value_or(0), mig.gpu_instance);
  listing.add(base + "/access");
  listing.add(fmt::format("{}/ci{}/access", base, mig.compute_instance));
  listing.add(mig.gpu_instance_node);
  listing.add(mig.compute_instance_node);
}

std::vector<std::string_view> ids_in(const std::string& text) {
  if (text.empty()) return {""};  // given and empty, which differs from not given
  return split(text, ',');
}

Error unknown_id(std::string_view id) {
  if (trim(id).empty()) {
    return {Errc::Invalid,
            "device error: an empty device id: give an index, a UUID, a PCI address or all"};
  }
  return {Errc::NotFound, fmt::format("device error: {}: unknown device id", id)};
}

Status add_devices(const model::Inventory& machine, const std::string& ids, Listing& listing) {
  for (auto id : ids_in(ids)) {
    bool found = same_id(id, "all");
    for (const auto& gpu : machine.gpus) {
      bool wanted = names_gpu(id, gpu);
      for (const auto& mig : gpu.mig.instances) wanted = wanted || names_mig(id, gpu, mig);
      if (wanted && gpu.minor) listing.add(fmt::format("/dev/nvidia{}", *gpu.minor));
      found = found || wanted;
    }
    if (!found) return unknown_id(id);
  }
  for (auto id : ids_in(ids)) {
    for (const auto& gpu : machine.gpus) {
      for (const auto& mig : gpu.mig.instances) {
        if (names_mig(id, gpu, mig)) add_mig(gpu, mig, listing);
      }
    }
  }
  return {};
}

// The files for MIG management belong to the machine, not to a GPU; the ids name the GPUs that they
// are for.
Status check_mig_ids(const std::string& ids, const model::Inventory& machine) {
  for (auto id : ids_in(ids)) {
    const auto gpu = std::find_if(machine.gpus.begin(), machine.gpus.end(),
                                  [&](const auto& one) { return names_gpu(id, one); });
    if (gpu == machine.gpus.end()) return unknown_id(id);
    if (!same_id(id, "all") && gpu->mig.current == model::MigMode::Unsupported) {
      return Error(
          Errc::Unsupported,
          fmt::format("device error: {}: {} cannot be split into MIG instances", id, gpu->name));
    }
  }
  return {};
}

// As in the kernel: the nodes are /dev/nvidia-caps-imex-channels/channelN, where N is a minor
// number.
Status check_imex_channel(const std::string& channel) {
  const auto number = parse_u64(channel);
  if (number && *number < (1U << 20U)) return {};
  return Error(Errc::Invalid,
               fmt::format("device error: \"{}\" is not an IMEX channel: give a number, such as 0",
                           channel));
}

Status add_mig_control(const char* what, const std::optional<std::string>& ids,
                       const model::Inventory& machine, Listing& listing) {
  if (!ids) return {};
  GANTRY_CHECK(check_mig_ids(*ids, machine));
  listing.add(fmt::format("/proc/driver/nvidia/capabilities/mig/{}", what));
  for (const auto& node : machine.nodes) {
    if (contains(node.why, fmt::format("mig/{}", what)) ||
        contains(node.why, fmt::format("MIG {}", what))) {
      listing.add(node.path);
    }
  }
  return {};
}

void add_driver_files(const model::Inventory& machine, model::DriverFileKind kind, bool wide,
                      Listing& listing) {
  for (const auto& file : machine.files) {
    if (file.kind == kind && file.is_32bit != wide) listing.add(file.path);
  }
}

void add_sockets(const model::Inventory& machine, const ContainerListOptions& options,
                 Listing& listing) {
  for (const auto& file : machine.files) {
    if (file.kind != model::DriverFileKind::IpcSocket) continue;
    if (options.no_persistenced && contains(file.path, "persistenced")) continue;
    if (options.no_fabricmanager && contains(file.path, "fabricmanager")) continue;
    listing.add(file.path);
  }
}

bool nothing_asked(const ContainerListOptions& o) {
  return !o.devices && !o.libraries && !o.binaries && !o.ipcs && !o.firmwares && !o.mig_config &&
         !o.mig_monitor && o.imex_channels.empty();
}

}  // namespace

Result<std::string> container_list_text(const model::Inventory& machine,
                                        const ContainerListOptions& options) {
  auto what = options;
  if (nothing_asked(options)) {
    what.devices = "all";
    what.libraries = what.binaries = what.ipcs = what.firmwares = true;
  }
  Listing listing;
  if (what.devices) {
    add_control_nodes(machine, listing);
    GANTRY_CHECK(add_devices(machine, *what.devices, listing));
  }
  GANTRY_CHECK(add_mig_control("config", what.mig_config, machine, listing));
  GANTRY_CHECK(add_mig_control("monitor", what.mig_monitor, machine, listing));
  for (const auto& channel : what.imex_channels) {
    GANTRY_CHECK(check_imex_channel(channel));
    listing.add("/dev/nvidia-caps-imex-channels/channel" + channel);
  }
  if (what.binaries) add_driver_files(machine, model::DriverFileKind::Binary, true, listing);
  if (what.libraries) add_driver_files(machine, model::DriverFileKind::Library, true, listing);
  if (what.compat32) add_driver_files(machine, model::DriverFileKind::Library, false, listing);
  if (what.ipcs) add_sockets(machine, what, listing);
  if (what.firmwares) add_driver_files(machine, model::DriverFileKind::Firmware, true, listing);
  return listing.text();
}

}  // namespace gantry::cli
