// SPDX-License-Identifier: Apache-2.0
// Device rules of a running container's cgroup. Only the classic chain edits these: its container
// has been set up without the GPU when the hook runs. Every other way puts the nodes into the OCI
// spec, where the runtime and systemd know of them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"
#include "container/runtime/classic/device_program.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

enum class CgroupVersion : std::uint8_t { V1, V2 };

struct CgroupLocation {
  CgroupVersion version = CgroupVersion::V2;
  std::string directory;  // "/sys/fs/cgroup/devices/docker/71ab"
  bool operator==(const CgroupLocation&) const = default;
};

// Where the devices of a process are decided: from its /proc/PID/cgroup and our
// /proc/self/mountinfo, which must be read in one cgroup namespace. nullopt: in no cgroup but the
// root, where nothing is refused. NotFound when no mount shows the cgroup.
Result<std::optional<CgroupLocation>> device_cgroup(std::string_view proc_cgroup,
                                                    std::string_view mountinfo);

// A cgroup whose rules can be changed, held open: the directory is found before a mount namespace
// is entered, the rules are changed after everything else has worked.
class DeviceCgroup {
 public:
  static Result<DeviceCgroup> open(const CgroupLocation& place);

  // v1: devices.allow, one line a node. v2: each program attached here is replaced by one that
  // allows ours first. A cgroup without a program refuses nothing and is left alone. On failure
  // fewer nodes are allowed, never more.
  Status allow(std::span<const DeviceRule> rules) const;

  const CgroupLocation& place() const { return place_; }

 private:
  DeviceCgroup(CgroupLocation place, sys::UniqueFd directory)
      : place_(std::move(place)), directory_(std::move(directory)) {}
  CgroupLocation place_;
  sys::UniqueFd directory_;
};

// "c 195:3 rw": the form of devices.allow.
std::string to_devices_allow(const DeviceRule& rule);

}  // namespace gantry::runtime
