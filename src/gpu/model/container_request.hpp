// SPDX-License-Identifier: Apache-2.0
// The GPUs and capabilities that one container requests, read from config.json, a command line, a
// CDI name or a grant. A plain value; plan turns it into ContainerEdits.
#pragma once

#include "gpu/model/inventory.hpp"

#include <string>
#include <vector>

namespace gantry::model {

inline constexpr std::uint32_t kMaxImexChannel = 1048575;

// The source of the request, in order of precedence.
enum class RequestSource : std::uint8_t {
  None,
  Grant,        // the node agent: /run/gantry/grants
  Annotation,   // cdi.k8s.io/...
  VolumeMount,  // /var/run/nvidia-container-devices/...
  Environment,  // NVIDIA_VISIBLE_DEVICES and its substitutes; an image can set these
  CommandLine,  // nvidia-container-cli configure, gantry cdi generate
};

// Device groups that are requested by name, in addition to GPUs.
enum class DeviceGroup : std::uint8_t { Gds, Gdrcopy, Mofed, Nvswitch };

struct ContainerRequest {
  RequestSource source = RequestSource::None;
  // As requested, trimmed, without duplicates and empty words: "all", "none", "0", "GPU-...",
  // "0:1", "MIG-...", "MIG-GPU-.../1/0", "00000000:3B:00.0". Empty: no GPU was requested.
  std::vector<std::string> devices;
  std::vector<std::string> cdi_devices;  // qualified names, "nvidia.com/gpu=0", "acme.org/nic=a"
  std::vector<Capability> capabilities{Capability::Utility, Capability::Compute};
  std::vector<std::string> requirements;  // values of NVIDIA_REQUIRE_*, one each, all must hold
  std::vector<std::uint32_t> imex_channels;
  std::vector<DeviceGroup> groups;
  bool mig_config = false;   // NVIDIA_MIG_CONFIG_DEVICES=all: may create and destroy instances
  bool mig_monitor = false;  // NVIDIA_MIG_MONITOR_DEVICES=all

  bool is_empty() const {
    return devices.empty() && cdi_devices.empty() && imex_channels.empty() && groups.empty() &&
           !mig_config && !mig_monitor;
  }
  bool operator==(const ContainerRequest&) const = default;
};

}  // namespace gantry::model
