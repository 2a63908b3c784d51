// SPDX-License-Identifier: Apache-2.0
// What a node offers to its kubelet and what it answers when some of it is taken: plain values
// between src/node/resources, which decides them, src/node/kubelet, which speaks them, and
// src/gpu/health.
#pragma once

#include "gpu/model/container_edits.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

// A GPU is offered in one of these ways at a time.
enum class AllocationMode : std::uint8_t {
  Whole,
  Replicas,  // the same GPU several times, no limit between them
  Mig,       // its instances
  Shares,    // parts with limits
  Vm         // passed through to a virtual machine
};

struct AdvertisedDevice {
  std::string id;    // the kubelet's name for it: "GPU-...", "MIG-...", "GPU-...::3", "nvidia0"
  GpuUuid gpu;       // the card that it is on; empty text: a token, which is on none
  GpuUuid mig;       // empty text: not an instance
  int replica = -1;  // -1: not a replica
  std::optional<int> numa_node;
  bool operator==(const AdvertisedDevice&) const = default;
};

struct AdvertisedResource {
  std::string name;  // "nvidia.com/gpu", "nvidia.com/mig-1g.18gb", "nvidia.com/gpu.shared"
  AllocationMode use = AllocationMode::Whole;
  bool only_one = false;  // a container may take one of these, not more
  bool tokens = false;    // ids name no GPU: which one a container has is decided when it starts
  std::vector<AdvertisedDevice> devices;
  bool operator==(const AdvertisedResource&) const = default;
};

// One container's answer to Allocate. The kubelet stores it and replays it for the life of the pod:
// every name in it must stay true across driver upgrades.
struct ContainerAllocateResponse {
  std::map<std::string, std::string> env;
  std::vector<MountEdit> mounts;
  std::vector<DeviceNodeEdit> nodes;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;  // qualified names
  bool operator==(const ContainerAllocateResponse&) const = default;
};

// Whether a card, or one instance of it, may be used, and what helps if not.
struct DeviceHealth {
  GpuUuid gpu;
  GpuUuid mig;  // empty text: the whole card
  bool usable = true;
  std::string cause;                    // one sentence; "" when usable
  std::string remedy;                   // a command
  std::optional<int> xid;               // the error that took it away
  std::int64_t since_unix_seconds = 0;  // when it became what it is
  bool operator==(const DeviceHealth&) const = default;
};

// Who has which devices, as the kubelet tells it.
struct DeviceAllocation {
  std::string pod_uid;  // "" where the source does not know it (podresources)
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;                               // sorted
  auto operator<=>(const DeviceAllocation&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace gantry::model
