// SPDX-License-Identifier: Apache-2.0
// Decides which GPUs can run CUDA programs. A GPU can answer NVML and still be unable to compute:
// nvidia_uvm is not loaded, or its NVSwitch fabric is not ready. `gantry doctor` and the agent's
// health use this one answer.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::health {

// Facts that are not in the inventory.
struct ComputeFacts {
  bool uvm_loaded = true;                   // /proc/devices has nvidia-uvm
  std::optional<bool> fabric_manager_runs;  // nullopt: we cannot see all processes
};
ComputeFacts read_compute_facts(const sys::Host& host, const model::Inventory& inventory);

// In the order in which they have to be removed.
enum class ComputeObstacleKind : std::uint8_t {
  DriverNotLoaded,
  VersionMismatch,  // of kernel module and libraries
  NodesMissing,     // /dev/nvidiactl or /dev/nvidiaN
  NvmlSilent,       // for none of the reasons above
  UvmNotLoaded,
  UvmNodeMissing,
  FabricNotReady,
  GpuLost,
  Prohibited  // by the GPU's compute mode
};

struct ComputeObstacle {
  ComputeObstacleKind kind = ComputeObstacleKind::DriverNotLoaded;
  std::vector<std::size_t> gpus;  // positions in Inventory::gpus
  std::string cause;              // one sentence
  std::string remedy;             // a command
  bool operator==(const ComputeObstacle&) const = default;
};

// Everything that keeps GPUs of the inventory from computing; empty: all of them can. The inventory
// must have its device nodes. Reads nothing.
std::vector<ComputeObstacle> find_compute_obstacles(const model::Inventory& inventory,
                                                    const ComputeFacts& facts);

// The first obstacle of a GPU; nullptr: it can compute.
const ComputeObstacle* obstacle_of(const std::vector<ComputeObstacle>& obstacles, std::size_t gpu);
const ComputeObstacle* find_obstacle(const std::vector<ComputeObstacle>& obstacles,
                                     ComputeObstacleKind kind);

// What to type, also for the doctor's checks.
inline constexpr std::string_view kLoadDriver = "sudo modprobe nvidia";
inline constexpr std::string_view kReloadDriver =
    "sudo modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia && sudo modprobe nvidia "
    " # end all GPU programs first; otherwise sudo reboot";
inline constexpr std::string_view kLoadUvm =
    "sudo modprobe nvidia-uvm && echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf";
inline constexpr std::string_view kMakeUvmNodes = "sudo nvidia-modprobe -c 0 -u";
inline constexpr std::string_view kStartFabricManager =
    "sudo systemctl enable --now nvidia-fabricmanager";

}  // namespace gantry::health
