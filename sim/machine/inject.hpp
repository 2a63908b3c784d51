// SPDX-License-Identifier: Apache-2.0
// Injects faults at run time and clears them. Each call changes the tree's libraries in place;
// running processes see the change at once.
#pragma once

#include "base/core/result.hpp"
#include "sim/driver/image.h"
#include "sim/machine/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::sim {

// Injects an event and the effect of its XID on the card: 79 loses it, 48 and 95 require a reset,
// 63 leaves a remapping pending, 13, 31, 43 and 45 only kill a program.
Status inject_xid(const std::string& root, std::uint32_t gpu, std::uint32_t xid);
Status inject_lost(const std::string& root, std::uint32_t gpu);

// Removes the GPU from the machine: neither the kernel nor new NVML sessions list it.
Status inject_remove(const std::string& root, std::uint32_t gpu);

struct EccErrors {
  std::uint64_t corrected = 0, uncorrected = 0;  // added to the current counters
};
Status inject_ecc(const std::string& root, std::uint32_t gpu, const EccErrors& errors);

// From the slowdown temperature on, it also throttles the clocks.
Status inject_temperature(const std::string& root, std::uint32_t gpu, std::int32_t celsius);

// Sets the whole layout, as mig-parted does; nullopt switches MIG off.
Status inject_mig(const std::string& root, std::uint32_t gpu,
                  const std::optional<std::vector<MigRequest>>& layout);

// Removes /proc/driver/nvidia and /sys/module/nvidia. No GPU keeps its MIG instances, only an
// Ampere card its MIG mode, and there a pending change of it takes effect.
Status inject_unload(const std::string& root);
Status inject_load(const std::string& root);
// Unload and load, with a new boot id.
Status inject_reboot(const std::string& root);

struct Fault {
  std::string function;     // "nvmlDeviceGetName", "cuInit", "mig": all that change MIG, "*": all
  std::int32_t result = 0;  // 0: answer normally
  std::uint32_t delay_ms = 0;  // GANTRY_SIM_HANG: until the fault is cleared
  std::uint32_t every = 1;     // each Nth call
  std::uint64_t call = 0;      // the Nth call from now alone
  gantry_sim_fault_action action = GANTRY_SIM_FAULT_ONLY;
};
Status inject_fault(const std::string& root, const Fault& fault);

enum class ClearScope : std::uint8_t {
  Everything,
  Lost,
  Removed,
  Ecc,
  Temperature,
  Mig,
  Driver,
  Faults
};
// Restores the state after create; nullopt: every GPU.
Status clear(const std::string& root, ClearScope what, std::optional<std::uint32_t> gpu);

}  // namespace gantry::sim
