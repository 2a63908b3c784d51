// SPDX-License-Identifier: Apache-2.0
// The processes that have a GPU's device nodes open or mapped, with any driver: the driver cannot
// let go of the GPU before they close them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/pci_address.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::device_users {

struct DeviceUser {
  std::uint32_t pid = 0;
  std::uint32_t parent = 0;  // 0 if it is unknown
  std::string command;       // the name of the process, at most 15 bytes; "" if it is unknown
  std::string line;          // the beginning of its command line; "" if it is unknown
  std::string pod_uid;       // "" if it is in no pod
  std::string node;          // "/dev/nvidia0"
  bool operator==(const DeviceUser&) const = default;
};

// "process 4711 (python3 train.py) of pod 6f9c1d1e-... with /dev/nvidia0 open"
std::string describe(const DeviceUser& user);

// The nodes of one GPU: /dev/nvidiaN, those of its MIG instances below /dev/nvidia-caps, its DRM
// nodes, and those of VFIO: the group and the device. Not nvidiactl and nvidia-uvm, which belong to
// no GPU. Timeout if the driver does not say in time which node it is.
Result<std::vector<std::string>> device_nodes(const sys::Host& host, const model::PciAddress& gpu);

// By pid; a process appears once. Processes that end meanwhile are left out. Denied if the
// descriptors of another user's process cannot be read, because then the list would be incomplete;
// Timeout for the same reason if the driver does not answer. Reads /proc for every process of the
// machine: milliseconds to tenths of a second.
Result<std::vector<DeviceUser>> find_users(const sys::Host& host, const model::PciAddress& gpu);
// Of these nodes: "/dev/nvidia-caps/nvidia-cap12" for the users of one MIG instance.
Result<std::vector<DeviceUser>> find_node_users(const sys::Host& host,
                                                const std::vector<std::string>& nodes);

}  // namespace gantry::device_users
