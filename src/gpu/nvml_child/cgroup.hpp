// SPDX-License-Identifier: Apache-2.0
// Finds the pod and the container of a process from the name of its cgroup.
#pragma once

#include <string>
#include <string_view>

namespace gantry::nvml_child {

struct CgroupOwner {
  std::string pod_uid;       // "6f9c1d1e-..." with dashes; "" when in no pod
  std::string container_id;  // 64 hexadecimal digits; "" when in no container
  bool operator==(const CgroupOwner&) const = default;
};

// `text` is the content of /proc/PID/cgroup; any bytes are accepted. Supports cgroupfs
// ("/kubepods/burstable/podUID/ID") and systemd
// ("kubepods-burstable-podUID_WITH_UNDERSCORES.slice/cri-containerd-ID.scope").
CgroupOwner parse_cgroup_owner(std::string_view text);

}  // namespace gantry::nvml_child
