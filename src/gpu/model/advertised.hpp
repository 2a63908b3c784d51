// SPDX-License-Identifier: Apache-2.0
// The devices that a node advertises to its kubelet and its answers to Allocate. Plain values:
// src/node/resources decides them, src/node/kubelet sends them, src/gpu/health uses them.
#pragma once

#include "base/core/object_ref.hpp"
#include "gpu/model/container_edits.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

// A GPU is advertised in one of these ways at a time.
enum class AllocationMode : std::uint8_t {
  Whole,
  Replicas,  // the same GPU several times, no limit between them
  Mig,       // its instances
  Shares,    // parts with limits
  Vm         // passed through to a virtual machine
};

struct AdvertisedDevice {
  std::string id;    // the kubelet's name for it: "GPU-...", "MIG-...", "GPU-...::3", "nvidia0"
  GpuUuid gpu;       // the card that it is on; empty text: a token, which belongs to no card
  GpuUuid mig;       // empty text: not an instance
  int replica = -1;  // -1: not a replica
  std::optional<int> numa_node;
  bool operator==(const AdvertisedDevice&) const = default;
};

struct AdvertisedResource {
  std::string name;  // "nvidia.com/gpu", "nvidia.com/mig-1g.18gb", "nvidia.com/gpu.shared"
  AllocationMode use = AllocationMode::Whole;
  bool only_one = false;  // a container may take only one of these
  bool tokens = false;    // ids do not name a GPU: the GPU is chosen when the container starts
  std::vector<AdvertisedDevice> devices;
  bool operator==(const AdvertisedResource&) const = default;
};

// One container's answer to Allocate. The kubelet stores it and replays it for the life of the pod:
// every name in it must stay valid across driver upgrades.
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
  std::optional<int> xid;               // the error that made it unhealthy
  std::int64_t since_unix_seconds = 0;  // time of the last change
  bool operator==(const DeviceHealth&) const = default;
};

// The devices of one container, as reported by the kubelet.
struct DeviceAllocation {
  PodRef pod;  // podresources knows no UID, the checkpoint nothing else
  std::string container;
  std::string resource;
  std::vector<std::string> ids;                               // sorted
  auto operator<=>(const DeviceAllocation&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace gantry::model
