// SPDX-License-Identifier: Apache-2.0
// Device rules of a running container's cgroup. Only the classic hook changes them, because its
// container was set up without the GPU. Every other way adds the nodes to the OCI spec, so that the
// runtime and systemd know them.
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

// Finds the cgroup that controls the devices of a process, from its /proc/PID/cgroup and our
// /proc/self/mountinfo, which must be read in the same cgroup namespace. nullopt: the process is in
// the root cgroup, which refuses nothing. NotFound if no mount shows the cgroup.
Result<std::optional<CgroupLocation>> device_cgroup(std::string_view proc_cgroup,
                                                    std::string_view mountinfo);

// An open cgroup directory: it is opened before entering a mount namespace, and its rules are
// changed after all other steps have succeeded.
class DeviceCgroup {
 public:
  static Result<DeviceCgroup> open(const CgroupLocation& place);

  // v1: writes one line for each node to devices.allow. v2: replaces each attached program by one
  // that allows our nodes first. A cgroup without a program refuses nothing and is not changed. On
  // failure, fewer nodes are allowed, never more.
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
