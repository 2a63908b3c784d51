// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/transform.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::cdi {
namespace {

class Conversion {
 public:
  Conversion(Spec spec, Version target) : target_(target) {
    out.spec = std::move(spec);
    out.spec.version = to_string(target);
  }

  Status run() {
    GANTRY_CHECK(check_kind());
    drop_annotations();
    GANTRY_CHECK(rename_devices());
    Status status;
    for_each_edits(out.spec, [&](Edits& edits) {
      if (status.ok()) status = convert(edits);
    });
    GANTRY_CHECK(std::move(status));
    return check_devices();
  }

  DowngradedSpec out;

 private:
  bool lacks(Version since) const { return target_ < since; }

  void say(const std::string& word) {
    if (std::find(out.words.begin(), out.words.end(), word) == out.words.end())
      out.words.push_back(word);
  }
  Error refuse(std::string_view what, Version since) const {
    return {Errc::Unsupported, fmt::format("CDI {} does not support this: {}; {} does",
                                           to_string(target_), what, to_string(since))};
  }

  Status check_kind() const {
    const auto slash = out.spec.kind.find('/');
    const bool dot =
        slash != std::string::npos && out.spec.kind.find('.', slash) != std::string::npos;
    if (dot && lacks(kV06)) {
      return refuse(fmt::format("class of kind {} has a dot", out.spec.kind), kV06);
    }
    return {};
  }

  void drop_annotations() {
    if (!lacks(kV06)) return;
    bool any = !out.spec.annotations.empty();
    out.spec.annotations.clear();
    for (auto& device : out.spec.devices) {
      any = any || !device.annotations.empty();
      device.annotations.clear();
    }
    if (any) say("annotations are dropped; containers do not see them");
  }

  Status rename_devices() {
    if (!lacks(kV05)) return {};
    const auto front = out.spec.kind.substr(out.spec.kind.find('/') + 1);
    std::vector<std::string> renamed;
    for (auto& device : out.spec.devices) {
      if (device.name.empty() || device.name[0] < '0' || device.name[0] > '9') continue;
      const auto name = front + device.name;
      if (out.spec.find(name) != nullptr) {
        return refuse(
            fmt::format("device {} starts with a digit, and {} is taken", device.name, name), kV05);
      }
      renamed.push_back(fmt::format("{} is {}", device.name, name));
      device.name = name;
    }
    if (!renamed.empty()) {
      say(fmt::format("names may not start with a digit: {}", fmt::join(renamed, ", ")));
    }
    return {};
  }

  Status convert(Edits& edits) {
    if (lacks(kV11)) drop_newest(edits);
    if (lacks(kV07)) drop_groups(edits);
    if (lacks(kV05)) GANTRY_CHECK(drop_host_paths(edits));
    if (lacks(kV04)) GANTRY_CHECK(drop_mount_types(edits));
    return {};
  }

  void drop_newest(Edits& edits) {
    for (const auto& device : edits.net_devices) {
      say(fmt::format("netDevices is dropped: {} does not come into the container as {}",
                      device.host_interface_name, device.name));
    }
    edits.net_devices.clear();
    if (!edits.intel_rdt) return;
    if (!edits.intel_rdt->schemata.empty()) say("intelRdt's schemata is dropped");
    if (edits.intel_rdt->enable_monitoring) say("intelRdt's enableMonitoring is dropped");
    edits.intel_rdt->schemata.clear();
    edits.intel_rdt->enable_monitoring = false;
  }

  void drop_groups(Edits& edits) {
    if (!edits.additional_gids.empty()) {
      say(
          fmt::format("additionalGids is dropped: a process that is not root lacks group {} and "
                      "may not open the nodes; add it by hand (--group-add)",
                      fmt::join(edits.additional_gids, ", ")));
    }
    edits.additional_gids.clear();
    if (edits.intel_rdt) say("intelRdt is dropped");
    edits.intel_rdt.reset();
  }

  // A second name for a node that the container has anyway, such as those below /dev/dri/by-path,
  // is not worth a refusal.
  void drop_second_names(Edits& edits) {
    const auto nodes = edits.device_nodes;
    const auto is_second = [&](const auto& node) {
      return !node.host_path.empty() && node.host_path != node.path &&
             std::any_of(nodes.begin(), nodes.end(),
                         [&](const auto& other) { return other.path == node.host_path; });
    };
    if (std::erase_if(edits.device_nodes, is_second) != 0)
      say("second names of nodes, such as those below /dev/dri/by-path, are dropped");
  }

  Status drop_host_paths(Edits& edits) {
    drop_second_names(edits);
    for (auto& node : edits.device_nodes) {
      if (!node.host_path.empty() && node.host_path != node.path) {
        return refuse(fmt::format("node {} is {} on the host", node.path, node.host_path), kV05);
      }
      node.host_path.clear();
    }
    return {};
  }

  Status drop_mount_types(Edits& edits) {
    for (auto& mount : edits.mounts) {
      if (mount.type.empty()) continue;
      if (mount.type != "bind" && mount.type != "none") {
        return refuse(fmt::format("mount at {} is of type {}", mount.container_path, mount.type),
                      kV04);
      }
      mount.type.clear();
      say("the mounts' type is dropped; bind is the default");
    }
    return {};
  }

  // Engines refuse a file with an empty device.
  Status check_devices() const {
    for (const auto& device : out.spec.devices) {
      if (!device.edits.empty()) continue;
      return Error(Errc::Unsupported, fmt::format("CDI {} supports none of the edits of device {}",
                                                  to_string(target_), device.name));
    }
    return {};
  }

  Version target_;
};

}  // namespace

Result<DowngradedSpec> downgrade(const Spec& spec, Version target) {
  Conversion conversion(spec, target);
  GANTRY_CHECK(conversion.run());
  return std::move(conversion.out);
}

}  // namespace gantry::cdi
