// SPDX-License-Identifier: Apache-2.0
// Faults at run time, and the way back. Each call changes the tree's libraries in place; processes
// that run on them see it at once.
#pragma once

#include "base/core/result.hpp"
#include "sim/machine/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::sim {

// An event, and what an XID of its class does to the card: 79 loses it, 48 and 95 ask for a reset,
// 63 leaves a remapping pending, 13, 31, 43, 45 do nothing but kill a program.
Status inject_xid(const std::string& root, std::uint32_t gpu, std::uint32_t xid);
Status inject_lost(const std::string& root, std::uint32_t gpu);

// Taken out of the machine: the kernel lists it no more, and neither do sessions that begin now.
Status inject_remove(const std::string& root, std::uint32_t gpu);

struct EccErrors {
  std::uint64_t corrected = 0, uncorrected = 0;  // added to what is counted already
};
Status inject_ecc(const std::string& root, std::uint32_t gpu, const EccErrors& errors);

// From the slowdown temperature on, clocks are throttled too.
Status inject_temperature(const std::string& root, std::uint32_t gpu, std::int32_t celsius);

// The whole layout at once, as mig-parted applies it: nullopt switches MIG off.
Status inject_mig(const std::string& root, std::uint32_t gpu,
                  const std::optional<std::vector<MigRequest>>& layout);

Status inject_unload(const std::string& root);  // /proc/driver/nvidia and /sys/module/nvidia go
Status inject_load(const std::string& root);

struct Fault {
  std::string function;     // "nvmlDeviceGetName", "cuInit", "*"
  std::int32_t result = 0;  // 0: answer normally
  std::uint32_t delay_ms = 0;
  std::uint32_t every = 1;  // each Nth call
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
// Back to what create made; nullopt: every GPU.
Status clear(const std::string& root, ClearScope what, std::optional<std::uint32_t> gpu);

}  // namespace gantry::sim
