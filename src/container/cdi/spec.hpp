// SPDX-License-Identifier: Apache-2.0
// A Container Device Interface specification (a file in /etc/cdi or /var/run/cdi) as a plain value,
// with the field names of the format. Covers the format up to version 1.1.0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cdi {

struct DeviceNode {
  std::string path;
  std::string host_path;  // "": the same as path
  std::string type;       // b, c, u, p; "": as on the host
  std::optional<std::int64_t> major;
  std::optional<std::int64_t> minor;
  std::optional<std::uint32_t> file_mode;
  std::string permissions;  // of r, w, m; engines read "" as rwm
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  bool operator==(const DeviceNode&) const = default;
};

struct NetDevice {
  std::string host_interface_name;
  std::string name;
  bool operator==(const NetDevice&) const = default;
};

struct Hook {
  std::string hook_name;  // "createContainer"
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::optional<std::int64_t> timeout;  // seconds
  bool operator==(const Hook&) const = default;
};

struct Mount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options;
  std::string type;
  bool operator==(const Mount&) const = default;
};

struct IntelRdt {
  std::string clos_id;
  std::string l3_cache_schema;
  std::string mem_bw_schema;
  std::vector<std::string> schemata;
  bool enable_monitoring = false;
  bool enable_cmt = false;  // this and the next one: versions 0.7 to 1.0 only
  bool enable_mbm = false;
  bool operator==(const IntelRdt&) const = default;
};

struct Edits {
  std::vector<std::string> env;
  std::vector<DeviceNode> device_nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Hook> hooks;
  std::vector<Mount> mounts;
  std::optional<IntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;
  bool operator==(const Edits&) const = default;

  bool empty() const { return *this == Edits{}; }
};

using Annotations = std::map<std::string, std::string>;

struct Device {
  std::string name;
  Annotations annotations;
  Edits edits;
  bool operator==(const Device&) const = default;
};

struct Spec {
  std::string version;  // "0.5.0"; "": the writer uses the lowest version that has all fields
  std::string kind;     // "nvidia.com/gpu"
  Annotations annotations;
  std::vector<Device> devices;
  Edits edits;  // for every container that gets any of the devices
  bool operator==(const Spec&) const = default;

  const Device* find(const std::string& name) const {
    for (const auto& device : devices) {
      if (device.name == name) return &device;
    }
    return nullptr;
  }
};

// Calls `visit` with the edits of the specification and of each device.
template <class S, class Visit>
void for_each_edits(S& spec, Visit visit) {
  visit(spec.edits);
  for (auto& device : spec.devices) visit(device.edits);
}

}  // namespace gantry::cdi
