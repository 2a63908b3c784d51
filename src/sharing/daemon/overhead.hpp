// SPDX-License-Identifier: Apache-2.0
// Memory that a process uses in addition to its allocations: contexts, modules, the driver's own
// memory. NVML reports the total of a process, its row reports the allocations. Both may change
// while they are read, so the difference counts only if the process was at rest.
#pragma once

#include "sharing/daemon/shared_pages.hpp"

#include <cstdint>
#include <optional>

namespace gantry::daemon {

struct Overhead {
  std::uint64_t bytes = 0;
  std::uint32_t contexts = 0;  // that `bytes` includes
  bool operator==(const Overhead&) const = default;
};

// True if the process was at rest between two readings: its memory did not change, and no call was
// in progress that changes it. Only then do the row and NVML's value match.
bool is_quiescent(const ProcessUsage& before, const ProcessUsage& after);

// `used`: NVML's value, read between the two readings of the row; nullopt if the process has no
// memory there, or NVML does not report it.
Overhead updated_overhead(const Overhead& known, const ProcessUsage& before,
                          const ProcessUsage& after, std::optional<std::uint64_t> used);

// The size of a context on this GPU, measured at a process that has just created its first.
std::optional<std::uint64_t> context_cost(const Overhead& known, const Overhead& now);

}  // namespace gantry::daemon
