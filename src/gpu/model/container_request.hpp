// SPDX-License-Identifier: Apache-2.0
// What one container asks for, whoever spoke for it: read out of config.json, a command line, a CDI
// name or a grant. A plain value; plan turns it into ContainerEdits.
#pragma once

#include "gpu/model/inventory.hpp"

#include <string>
#include <vector>

namespace gantry::model {

// Who spoke, in the order in which they are believed.
enum class RequestSource : std::uint8_t {
  None,
  Grant,        // the node agent: /run/gantry/grants
  Annotation,   // cdi.k8s.io/...
  VolumeMount,  // /var/run/nvidia-container-devices/...
  Environment,  // NVIDIA_VISIBLE_DEVICES and its stand-ins; an image can set these
  CommandLine,  // nvidia-container-cli configure, gantry cdi generate
};

// Device groups that are asked for by name, beside GPUs.
enum class DeviceGroup : std::uint8_t { Gds, Gdrcopy, Mofed, Nvswitch };

struct ContainerRequest {
  RequestSource source = RequestSource::None;
  // Trimmed, without duplicates and empties, as asked: "all", "none", "0", "GPU-...", "0:1",
  // "MIG-...", "MIG-GPU-.../1/0", "00000000:3B:00.0". Empty: no GPU was asked for.
  std::vector<std::string> devices;
  std::vector<std::string> cdi_devices;  // qualified names, "nvidia.com/gpu=0", "acme.org/nic=a"
  std::vector<Capability> capabilities{Capability::Utility, Capability::Compute};
  std::vector<std::string> requirements;  // values of NVIDIA_REQUIRE_*, one each, all must hold
  std::vector<std::uint32_t> imex_channels;
  std::vector<DeviceGroup> groups;
  bool mig_config = false;   // NVIDIA_MIG_CONFIG_DEVICES=all: may make and destroy instances
  bool mig_monitor = false;  // NVIDIA_MIG_MONITOR_DEVICES=all

  bool is_empty() const {
    return devices.empty() && cdi_devices.empty() && imex_channels.empty() && groups.empty() &&
           !mig_config && !mig_monitor;
  }
  bool operator==(const ContainerRequest&) const = default;
};

}  // namespace gantry::model
